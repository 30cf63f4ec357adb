import { createRequire } from 'node:module'
import type { Event } from 'js-yaml'
import type { Path } from './diagnostics.ts'

// Loaded when there is a file to parse: a start without one does without it.
const load = createRequire(import.meta.url)

/** The library that parses YAML into events: its nodes in their order, with offsets into the text. */
export type Yaml = typeof import('js-yaml')

export function loadYaml(): Yaml {
  return load('js-yaml') as Yaml
}

/** Offsets of a node in the text, of a collection its begin alone; -1 where it has none. */
interface Range {
  readonly begin: number
  readonly end: number
}

const NOWHERE: Range = { begin: -1, end: -1 }

/** The events of a text: its nodes, and the lines on which they are. */
export class YamlEvents {
  readonly text: string
  readonly #yaml: Yaml
  readonly #events: readonly Event[]
  /** Nodes that the aliases mean, by the indices of both. */
  #targets: ReadonlyMap<number, number> | undefined
  #lineStarts: readonly number[] | undefined
  /** Keys by their names, of mappings whose lines were asked for. */
  readonly #keys = new Map<number, ReadonlyMap<string, number>>()
  /** Items of lists whose lines were asked for, with their offsets. */
  readonly #items = new Map<number, readonly { readonly index: number; readonly offset: number }[]>()

  constructor(yaml: Yaml, text: string, events: readonly Event[]) {
    this.#yaml = yaml
    this.text = text
    this.#events = events
  }

  at(index: number): Event {
    return this.#events[index] as Event
  }

  /** Index after the node that begins at `index`. */
  after(index: number): number {
    const { MAPPING, SEQUENCE, POP } = this.#yaml.EVENT_ID
    let next = index
    let depth = 0
    do {
      const { type } = this.at(next++)
      if (type === MAPPING || type === SEQUENCE) depth++
      else if (type === POP) depth--
    } while (depth > 0)
    return next
  }

  /** Text of a scalar; undefined for another node. */
  scalarAt(index: number): string | undefined {
    const event = this.at(index)
    return event.type === this.#yaml.EVENT_ID.SCALAR ? this.#yaml.getScalarValue(this.text, event) : undefined
  }

  /** The tag that a node states, as it is written; undefined where it states none. */
  tagOf(event: Event): string | undefined {
    return 'tagStart' in event && event.tagStart >= 0
      ? this.text.slice(event.tagStart, event.tagEnd)
      : undefined
  }

  /** Name of the anchor that a node has, or an alias names. */
  anchorOf(event: Event): string {
    return 'anchorStart' in event ? this.text.slice(event.anchorStart, event.anchorEnd) : ''
  }

  /** The node that an alias means: the last one above it that has its anchor. */
  targetOf(alias: number): number | undefined {
    this.#targets ??= this.#aliasTargets()
    return this.#targets.get(alias)
  }

  /** Where a node begins; `around` for an empty one. */
  offsetOf(index: number, around: number): number {
    const { begin } = this.#range(index)
    return begin < 0 ? around : begin
  }

  /** Line of an offset, from 1 on. */
  lineAt(offset: number): number {
    this.#lineStarts ??= lineStarts(this.text)
    let [low, high] = [0, this.#lineStarts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#lineStarts[middle] as number) <= offset) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Line on which the document begins whose event is at `index`, behind another. */
  lineOfDocument(index: number): number {
    const event = this.at(index)
    if (!('explicitStart' in event && event.explicitStart))
      return this.lineAt(this.offsetOf(index + 1, this.text.length))
    return this.lineAt(this.#found(/(?:^|\n)---/g, this.#endBefore(index)))
  }

  /**
   * Line of the node at `path`, or of its nearest ancestor; `root` is the document's node. Found when asked
   * for: few lines are, and a table of all of them takes as long as the tree.
   */
  lineOf(path: Path, root: number): number {
    const { ALIAS, MAPPING, SEQUENCE } = this.#yaml.EVENT_ID
    let node: number | undefined = root
    let offset = this.offsetOf(root, 0)
    for (const step of path) {
      if (this.at(node).type === ALIAS) node = this.targetOf(node)
      if (node === undefined) break
      const { type }: Event = this.at(node)
      if (type === MAPPING) {
        const key = this.#keysOf(node).get(String(step))
        if (key === undefined) break
        offset = this.offsetOf(key, offset)
        node = key + 1
      } else if (type === SEQUENCE) {
        const item: { index: number; offset: number } | undefined = this.#itemsOf(node)[Number(step)]
        if (!item) break
        offset = item.offset
        node = item.index
      } else break
    }
    return this.lineAt(offset)
  }

  #range(index: number): Range {
    const event = this.at(index)
    if ('valueStart' in event) {
      const { LITERAL_BLOCK, FOLDED_BLOCK } = this.#yaml.SCALAR_STYLE
      // The text of a block begins a line below its sign.
      const isBlock = event.style === LITERAL_BLOCK || event.style === FOLDED_BLOCK
      return { begin: isBlock ? event.valueStart - 1 : event.valueStart, end: event.valueEnd }
    }
    if ('start' in event) return { begin: event.start, end: event.start }
    return 'anchorStart' in event ? { begin: event.anchorStart, end: event.anchorEnd } : NOWHERE
  }

  /** Keys of a mapping by name; of several with one name, the first. */
  #keysOf(mapping: number): ReadonlyMap<string, number> {
    let keys = this.#keys.get(mapping)
    if (!keys) {
      const found = new Map<string, number>()
      for (const [place, key] of this.#childrenOf(mapping).entries()) {
        const name = place % 2 === 0 ? this.scalarAt(key) : undefined
        if (name !== undefined && !found.has(name)) found.set(name, key)
      }
      this.#keys.set(mapping, (keys = found))
    }
    return keys
  }

  /** Items of a list; an empty one begins at its dash, which is searched for behind the item before. */
  #itemsOf(list: number): readonly { readonly index: number; readonly offset: number }[] {
    let items = this.#items.get(list)
    if (!items) {
      let offset = this.offsetOf(list, 0)
      let isAfterEmpty = false
      items = this.#childrenOf(list).map((index, place) => {
        const { begin } = this.#range(index)
        if (begin >= 0) offset = begin
        else if (place > 0) {
          const behind = isAfterEmpty ? offset + 1 : this.#endBefore(index)
          offset = this.#found(/(?:^|\n)[ \t]*-/g, behind)
        }
        isAfterEmpty = begin < 0
        return { index, offset }
      })
      this.#items.set(list, items)
    }
    return items
  }

  #childrenOf(collection: number): readonly number[] {
    const children: number[] = []
    const { POP } = this.#yaml.EVENT_ID
    for (let next = collection + 1; this.at(next).type !== POP; next = this.after(next)) children.push(next)
    return children
  }

  /** Where the last node ends that is not empty and stands before an event. */
  #endBefore(index: number): number {
    for (let before = index - 1; before >= 0; before--) {
      const { end } = this.#range(before)
      if (end >= 0) return end
    }
    return 0
  }

  /** Offset of the last character that a pattern of line beginnings matches first, from `start` on. */
  #found(pattern: RegExp, start: number): number {
    // Blocks of text end behind their last line break.
    pattern.lastIndex = this.text[start - 1] === '\n' ? start - 1 : start
    return pattern.exec(this.text) ? pattern.lastIndex - 1 : start
  }

  #aliasTargets(): ReadonlyMap<number, number> {
    const anchored = new Map<string, number>()
    const targets = new Map<number, number>()
    for (const [index, event] of this.#events.entries()) {
      if (!('anchorStart' in event) || event.anchorStart < 0) continue
      const name = this.anchorOf(event)
      if (event.type !== this.#yaml.EVENT_ID.ALIAS) anchored.set(name, index)
      else {
        const target = anchored.get(name)
        if (target !== undefined) targets.set(index, target)
      }
    }
    return targets
  }
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}
