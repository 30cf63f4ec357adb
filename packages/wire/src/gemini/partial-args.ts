import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'

/** Object or array that is being assembled: its members by key or index, in the order of their arrival. */
type Branch = { readonly isList: boolean; readonly members: Map<string, Branch | Leaf> }
/** Scalar as JSON text. A string may grow until it is complete. */
type Leaf = { text: string; readonly isString: boolean }

const STEP = /\.([^.[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/gy
/** Maximum length of a path. */
const MAX_STEPS = 128

/** Arguments of a call that arrive in pieces, each for a path such as `$.list[0].name`. */
export class PartialArgs {
  readonly #root: Branch = { isList: false, members: new Map() }

  /** Adds the pieces in a chunk; unreadable ones are ignored. */
  add(pieces: readonly unknown[]): void {
    for (const value of pieces) {
      const piece = asRecord(value)
      const path = piece?.['jsonPath']
      const steps = typeof path === 'string' ? stepsOf(path) : undefined
      if (piece && steps) this.#put(steps, piece)
    }
  }

  /** Returns the arguments as JSON text. */
  toString(): string {
    return textOf(this.#root)
  }

  #put(steps: readonly Step[], piece: Fields): void {
    let branch = this.#root
    for (const [at, { key }] of steps.entries()) {
      const next = steps[at + 1]
      const found = branch.members.get(key)
      if (!next) {
        branch.members.set(key, grown(found, piece))
        return
      }
      const inner: Branch = found && 'members' in found ? found : { isList: next.isIndex, members: new Map() }
      branch.members.set(key, inner)
      branch = inner
    }
  }
}

interface Step {
  readonly key: string
  readonly isIndex: boolean
}

function stepsOf(path: string): Step[] | undefined {
  if (!path.startsWith('$')) return undefined
  const steps: Step[] = []
  STEP.lastIndex = 1
  let end = 1
  for (let match = STEP.exec(path); match && steps.length < MAX_STEPS; match = STEP.exec(path)) {
    const [, name, index, single, double] = match
    steps.push({ key: name ?? index ?? single ?? double ?? '', isIndex: index !== undefined })
    end = STEP.lastIndex
  }
  return end === path.length && steps.length > 0 ? steps : undefined
}

function grown(found: Branch | Leaf | undefined, piece: Fields): Leaf {
  const text = piece['stringValue']
  if (typeof text === 'string') {
    const before = found && 'text' in found && found.isString ? found.text : ''
    return { text: before + text, isString: true }
  }
  const value = piece['numberValue'] ?? piece['boolValue'] ?? null
  return { text: JSON.stringify(value), isString: false }
}

function textOf(value: Branch | Leaf): string {
  if ('text' in value) return value.isString ? JSON.stringify(value.text) : value.text
  const members = [...value.members]
  if (value.isList) return `[${members.map(([, member]) => textOf(member)).join(',')}]`
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${textOf(member)}`).join(',')}}`
}
