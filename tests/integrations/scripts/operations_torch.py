"""PyTorch's own operations on CUDA tensors: the same results as on the host."""

import threading

import torch
import torch.nn.functional as F

torch.manual_seed(7)
x = torch.randn(6, 8)
y = x.cuda()


def same(found, expected, **limits):
    assert found.is_cuda and found.dtype == expected.dtype
    torch.testing.assert_close(found.cpu(), expected, **limits)


# Views, and changes through them.
same(y.t()[1:5:2], x.t()[1:5:2])
for tensor in (x, y):
    tensor[1:4, ::2] += 1
    tensor.t()[2].mul_(3)
    tensor[5].zero_()
same(y, x)
x_out, y_out = torch.empty(0), torch.empty(0, device="cuda")
torch.add(x, 1, out=x_out), torch.add(y, 1, out=y_out)
same(y_out, x_out)
columns = torch.empty(50, 7, 3, device="cuda")  # the others are never written, and not read
columns[:, 2, 1] = torch.arange(50.0, device="cuda")
columns[3, :, ::2] = 5
same(columns[:, 2, 1] * 2, torch.arange(50.0).where(torch.arange(50) != 3, torch.tensor(3.0)) * 2)
same(y.unfold(0, 3, 1).sum(2), x.unfold(0, 3, 1).sum(2))
same(y.expand(2, 6, 8).contiguous(), x.expand(2, 6, 8).contiguous())

# From and to the host, other types, numbers.
same(y.to(torch.float16), x.to(torch.float16))
z = torch.zeros(6, 8, dtype=torch.int32)
z.copy_(y)
assert torch.equal(z, x.to(torch.int32)) and float(y.sum()) == float(y.cpu().sum())
same(torch.remainder(torch.arange(6, device="cuda"), 4), torch.remainder(torch.arange(6), 4))
assert "device='cuda:0'" in repr(y)

# Lazy conjugates and negatives.
c = torch.randn(4, 5, dtype=torch.complex64)
same(c.cuda().conj() @ c.cuda().t(), c.conj() @ c.t())
same(c.cuda().conj().imag + 1, c.conj().imag + 1)
same(torch.fft.ifft(c.cuda()), torch.fft.ifft(c))

# Generators.
torch.manual_seed(11)
first = torch.rand(50, device="cuda")
torch.manual_seed(11)
assert torch.equal(first, torch.rand(50, device="cuda"))
drawn = torch.randn(50, device="cuda", generator=torch.Generator("cuda").manual_seed(3))
same(drawn, drawn.cpu())

# Backward passes; halves are summed in float32, as on a GPU.
weight, bias, rows = torch.rand(64), torch.rand(64), torch.randn(4000, 64)
gradients = []
for device, dtype in (("cuda", torch.float16), ("cpu", torch.float32)):
    operands = [one.half().to(device, dtype).requires_grad_() for one in (rows, weight, bias)]
    F.layer_norm(operands[0], (64,), *operands[1:]).backward(rows.half().to(device, dtype))
    gradients.append([one.grad for one in operands])
for found, expected in zip(*gradients, strict=True):
    limit = 2**-10 * float(expected.abs().max())
    torch.testing.assert_close(found.cpu().float(), expected, atol=limit, rtol=0)
q = torch.randn(1, 2, 16, 8)
same(
    F.scaled_dot_product_attention(*[q.cuda()] * 3),
    F.scaled_dot_product_attention(*[q] * 3),
    atol=1e-5,
    rtol=1e-5,
)
net = torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3), torch.nn.BatchNorm1d(4), torch.nn.ReLU()).cuda()
optimizer = torch.optim.Adam(net.parameters())
net(torch.randn(2, 3, 9, device="cuda")).sum().backward()
optimizer.step()

# Other threads, other streams.
results = []
thread = threading.Thread(target=lambda: results.append(y + 1))
thread.start()
thread.join()
same(results[0], x + 1)
with torch.cuda.stream(torch.cuda.Stream()):
    same(y * 2, x * 2)
print("PASS")
