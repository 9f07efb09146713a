import os
import tempfile

import torch

os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()


@torch.compile
def function(x, y):
    return torch.softmax((x + y).sin(), -1)


x, y = torch.randn(64, 128), torch.randn(64, 128)
torch.testing.assert_close(function(x.cuda(), y.cuda()).cpu(), torch.softmax((x + y).sin(), -1))
print("PASS")
