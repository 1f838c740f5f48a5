// Server-sent events by fetch, since EventSource cannot carry a token. It comes back by itself and
// goes on after the last event that it saw.

import { send } from "./api.js";

export class Stream {
  constructor(path, { event, state }) {
    this.path = path;
    this.event = event;
    this.state = state;
    this.last = null;
    this.wait = 1000;
    this.stop = new AbortController();
    this.follow();
  }

  close() {
    this.stop.abort();
  }

  async follow() {
    while (!this.stop.signal.aborted) {
      try {
        await this.read();
      } catch (problem) {
        if (problem.name === "AbortError" || [401, 403, 404].includes(problem.status)) break;
      }
      this.state(false);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, this.wait);
        this.stop.signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
      });
      this.wait = Math.min(this.wait * 2, 30000);
    }
    this.state(false);
  }

  async read() {
    const headers = { Accept: "text/event-stream" };
    if (this.last !== null) headers["Last-Event-ID"] = this.last;
    const answer = await send(this.path, { headers, signal: this.stop.signal });
    this.state(true);
    this.wait = 1000;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) this.take(block);
    }
  }

  take(block) {
    const said = {};
    for (const line of block.split("\n")) {
      const at = line.indexOf(":");
      if (at > 0) said[line.slice(0, at)] = line.slice(at + 1).replace(/^ /, "");
    }
    if (said.id !== undefined) this.last = said.id;
    if (said.data) this.event(JSON.parse(said.data));
  }
}
