// The lanes of the warp: what each does, and where.

import {el, lanesText} from "./dom.js";
import {LANES} from "./recording.js";
import {placeText} from "./steps.js";

const STATES = {
  executes: ["●", "execute"],
  guarded: ["○", "skip it: their guard is false"],
  ready: ["…", "are ready; it is another warp's turn"],
  barrier: ["‖", "wait at barrier"],
  waits: ["⋯", "wait for the other lanes of the warp"],
  exited: ["×", "have exited"],
  absent: [" ", "do not exist: the block has no such threads"],
};

export class LanesView {
  /** @param {(lane: number) => void} onLane */
  constructor(container, recording, onLane) {
    this.recording = recording;
    this.buttons = Array.from(
      {length: LANES},
      (_, lane) => el("button", {type: "button", "data-lane": lane, click: () => onLane(lane)}),
    );
    this.words = el("ul", {class: "lane-words"});
    container.append(
      el(
        "div",
        {
          class: "lanes-grid",
          role: "group",
          "aria-label": "Lanes; the chosen one's values are shown"
        },
        ...this.buttons
      ),
      this.words
    );
  }

  show(warp, k, chosen) {
    const lanes = this.recording.lanes(warp, k);
    lanes.forEach(({ state }, lane) => {
      const button = this.buttons[lane];
      button.className = state;
      const sign = el("i", {"aria-hidden": "true"}, STATES[state][0]);
      button.replaceChildren(el("b", {}, `${lane}`), sign);
      button.setAttribute("aria-pressed", lane === chosen);
      button.setAttribute("aria-label", `lane ${lane}: ${state}`);
    });
    this.words.replaceChildren(...this.groups(lanes).map((text) => el("li", {}, text)));
  }

  /** Lanes that do the same, in words. */
  groups(lanes) {
    const groups = new Map();
    lanes.forEach((one, lane) => {
      const key = `${one.state} ${one.barrier} ${one.instruction}`;
      if (!groups.has(key)) groups.set(key, { ...one, lanes: [] });
      groups.get(key).lanes.push(lane);
    });
    return [...groups.values()].filter(
                                 ({state}) => state !== "absent"
    ).map((group) => this.sentence(group));
  }

  sentence({state, barrier, instruction, lanes}) {
    const what = `${STATES[state][1]}${state === "barrier" ? ` ${barrier}` : ""}`;
    const subject = lanes.length === LANES ? "All 32 lanes" : lanesText(lanes).replace("l", "L");
    return `${STATES[state][0]} ${subject}: ${what}${this.where(instruction, state)}`;
  }

  where(index, state) {
    if (index === null) return "";
    const line = placeText(this.recording, this.recording.header.instructions[index]);
    return state === "executes" || state === "guarded" ? ` (${line})` : `; next ${line}`;
  }
}

/** A block's index as a text: "(3, 0)" */
function blockText(index) {
  const last = index[2] ? 3 : index[1] ? 2 : 1;
  return last === 1 ? `${index[0]}` : `(${index.slice(0, last).join(", ")})`;
}

/** "block 0, warp 3" */
export function warpText({header}, warp) {
  const {block, warp: number} = header.warps[warp];
  return header.blocks.length > 1 ? `block ${blockText(header.blocks[block].index)}, warp ${number}`
                                  : `warp ${number}`;
}
