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

/** Most aliases that are followed one after the other. */
const MAX_ALIASES = 32

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** The events of one document: what its nodes begin and end with, and on which line. */
export class YamlEvents {
  readonly text: string
  readonly #yaml: Yaml
  readonly #events: readonly Event[]
  /** Events that the aliases mean, by the indices of both. */
  #targets: ReadonlyMap<number, number> | undefined
  #lineStarts: readonly number[] | undefined
  /** Indices of the children of collections whose lines were asked for. */
  readonly #children = new Map<number, readonly number[]>()
  /** Values by the names of mappings whose lines were asked for. */
  readonly #names = new Map<number, ReadonlyMap<string, number>>()

  constructor(yaml: Yaml, text: string, events: readonly Event[]) {
    this.#yaml = yaml
    this.text = text
    this.#events = events
  }

  at(index: number): Event {
    return this.#events[index] as Event
  }

  /** Offsets of a node in the text, of a collection its begin alone; -1 where it has none. */
  #range(index: number): { readonly begin: number; readonly end: number } {
    const event = this.at(index)
    if ('valueStart' in event) {
      const { LITERAL_BLOCK, FOLDED_BLOCK } = this.#yaml.SCALAR_STYLE
      // The text of a block begins a line below its sign.
      const isBlock = event.style === LITERAL_BLOCK || event.style === FOLDED_BLOCK
      return { begin: isBlock ? event.valueStart - 1 : event.valueStart, end: event.valueEnd }
    }
    if ('start' in event) return { begin: event.start, end: event.start }
    return 'anchorStart' in event
      ? { begin: event.anchorStart, end: event.anchorEnd }
      : { begin: -1, end: -1 }
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

  /** Where a node begins; `around` for an empty one. */
  offsetOf(index: number, around: number): number {
    const { begin } = this.#range(index)
    return begin < 0 ? around : begin
  }

  /** Where an item of a list begins; an empty one at its dash, which follows what precedes the item. */
  itemOffset(index: number, around: number): number {
    const { begin } = this.#range(index)
    if (begin >= 0) return begin
    let before = index - 1
    let dashes = 1
    let depth = 0
    for (; this.#range(before).end < 0; before--)
      if (this.at(before).type === this.#yaml.EVENT_ID.POP) depth++
      else if (depth === 0) dashes++
    const { end } = this.#range(before)
    const isFirst = depth === 0 && this.at(before).type === this.#yaml.EVENT_ID.SEQUENCE
    const dash = /(?:^|\n)[ \t]*-/g
    dash.lastIndex = isFirst ? Math.max(this.text.lastIndexOf('\n', end), 0) : end
    let found: RegExpExecArray | null = null
    for (; dashes > 0; dashes--) found = dash.exec(this.text)
    return found ? dash.lastIndex - 1 : around
  }

  /** The node that an alias means: the last one above it that has its anchor. */
  targetOf(alias: number): number | undefined {
    this.#targets ??= this.#aliasTargets()
    return this.#targets.get(alias)
  }

  /** Line on which the document begins whose event is at `index`. */
  lineOfDocument(index: number): number {
    const begin = this.offsetOf(index + 1, this.text.length)
    return this.lineAt(this.text.lastIndexOf('\n---', begin) + 1)
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

  /**
   * Line of the node at `path`, or of its nearest ancestor; `root` is the document's node. Found when asked
   * for: few lines are, and a table of all of them takes as long as the tree.
   */
  lineOf(path: Path, root: number): number {
    const { ALIAS, MAPPING, SEQUENCE } = this.#yaml.EVENT_ID
    let node: number | undefined = root
    let offset = this.offsetOf(root, 0)
    for (const step of path) {
      for (let hops = 0; node !== undefined && this.at(node).type === ALIAS && hops < MAX_ALIASES; hops++)
        node = this.targetOf(node)
      if (node === undefined) break
      const { type }: Event = this.at(node)
      let child: number | undefined
      if (type === MAPPING) child = this.#keysOf(node).get(String(step))
      else if (type === SEQUENCE) child = this.#childrenOf(node)[Number(step)]
      if (child === undefined) break
      offset = type === SEQUENCE ? this.itemOffset(child, offset) : this.offsetOf(child, offset)
      node = type === MAPPING ? child + 1 : child
    }
    return this.lineAt(offset)
  }

  /** Keys of a mapping by name; of several with one name, the first. */
  #keysOf(mapping: number): ReadonlyMap<string, number> {
    let keys = this.#names.get(mapping)
    if (!keys) {
      const found = new Map<string, number>()
      const children = this.#childrenOf(mapping)
      for (let i = 0; i < children.length; i += 2) {
        const name = this.scalarAt(children[i] as number)
        if (name !== undefined && !found.has(name)) found.set(name, children[i] as number)
      }
      this.#names.set(mapping, (keys = found))
    }
    return keys
  }

  #childrenOf(collection: number): readonly number[] {
    let children = this.#children.get(collection)
    if (!children) {
      const found: number[] = []
      const { POP } = this.#yaml.EVENT_ID
      for (let next = collection + 1; this.at(next).type !== POP; next = this.after(next)) found.push(next)
      this.#children.set(collection, (children = found))
    }
    return children
  }

  #aliasTargets(): ReadonlyMap<number, number> {
    const anchored = new Map<string, number>()
    const targets = new Map<number, number>()
    for (const [index, event] of this.#events.entries()) {
      if (!('anchorStart' in event) || event.anchorStart < 0) continue
      const name = this.text.slice(event.anchorStart, event.anchorEnd)
      if (event.type !== this.#yaml.EVENT_ID.ALIAS) anchored.set(name, index)
      else {
        const target = anchored.get(name)
        if (target !== undefined) targets.set(index, target)
      }
    }
    return targets
  }
}
