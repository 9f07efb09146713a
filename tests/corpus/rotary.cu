// Rotary position embedding: each pair of a row is turned by an angle of its position.
__global__ void rotary(float2 *x, int positions, int pairs, float base) {
    int pair = blockIdx.x * blockDim.x + threadIdx.x, position = blockIdx.y;
    if (pair >= pairs) return;
    float angle = position * powf(base, -(float)pair / pairs), sine, cosine;
    sincosf(angle, &sine, &cosine);
    float2 v = x[position * pairs + pair];
    x[position * pairs + pair] = make_float2(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine);
}
