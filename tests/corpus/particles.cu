// An array of structs, updated in place by a struct of parameters, with a method and a bool.
struct particle {
    float3 place, speed;
    short kind;
    bool alive;
};
struct world {
    float low, high, step;
    int kinds;
    __device__ float bounce(float &v, float p) const {
        p += v * step;
        if (p < low || p > high) v = -v;
        return fminf(fmaxf(p, low), high);
    }
};

__global__ void particles(particle *all, world w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n || !all[i].alive) return;
    particle p = all[i];
    p.place.x = w.bounce(p.speed.x, p.place.x);
    p.place.y = w.bounce(p.speed.y, p.place.y);
    p.place.z = w.bounce(p.speed.z, p.place.z);
    p.kind = (short)((p.kind + 1) % w.kinds);
    p.alive = p.kind != 0;
    all[i] = p;
}
