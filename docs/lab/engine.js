// The emulator in a Worker, which is made from a Blob URL: pages opened from a folder cannot load
// workers from files. A run is stopped by ending its worker; the next call starts another.

/** base64 of a deflate stream -> bytes. */
export async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

export class Stopped extends Error {
  constructor() {
    super("stopped");
  }
}

export class Engine {
  /**
   * @param {string} program the worker's source
   * @param {Promise<ArrayBuffer>} module the WebAssembly module
   */
  constructor(program, module) {
    this.url = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
    this.module = module;
    this.waiting = new Map();
    this.last = 0;
    this.worker = null;
    this.onprogress = () => {};
  }

  #start() {
    this.worker = new Worker(this.url);
    this.worker.onmessage = ({ data }) => this.#answered(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.#end(Error(event.message || "the worker failed"));
    };
    this.started = this.module.then((bytes) => this.#post("start", { bytes }));
  }

  #answered({ id, value, error, progress }) {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    if (progress) return void this.onprogress(progress);
    this.waiting.delete(id);
    if (!error) return waiting.resolve(value);
    waiting.reject(Object.assign(Error(error.message), { code: error.code }));
    // Memory that has grown stays: a run that failed for want of it may have left little.
    if (error.code === "memory" || error.broken) this.#end(Error(error.message));
  }

  #post(job, argument) {
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, job, argument });
    });
  }

  /** Runs a job of worker.js. Rejects with an Error, or with Stopped. */
  async call(job, argument = {}) {
    if (!this.worker) this.#start();
    const worker = this.worker;
    await this.started;
    if (worker !== this.worker) throw new Stopped();
    return this.#post(job, argument);
  }

  #end(why) {
    this.worker?.terminate();
    this.worker = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of waiting) one.reject(why);
  }

  /** Ends all that runs. */
  stop() {
    this.#end(new Stopped());
  }
}
