/** Fields of a Go struct: `true` accepts any value, a struct an object, and `[struct]` a list of objects. */
export interface Struct {
  readonly [field: string]: true | Struct | readonly [Struct]
}

/** A JSON value that keeps the order of an object's members, and repeated names. */
type Value = string | number | boolean | null | readonly Value[] | Members
interface Members {
  readonly members: readonly (readonly [name: string, value: Value])[]
}

/**
 * Reads JSON as Go's encoding/json decodes it into a struct: names match without regard to case (by simple
 * folding) where none matches exactly, and the last member of a field wins; objects are read into one
 * another.
 */
export function readAsGo(text: string, struct: Struct): Readonly<Record<string, unknown>> {
  return decode(new Reader(text).value(), struct, {})
}

function decode(value: Value, struct: Struct, into: Record<string, unknown>): Record<string, unknown> {
  if (!isObject(value)) return into
  for (const [name, member] of value.members) {
    const field = Object.hasOwn(struct, name)
      ? name
      : Object.keys(struct).find((one) => new RegExp(`^${one}$`, 'iu').test(name))
    const kind = field === undefined ? undefined : struct[field]
    if (field === undefined || kind === undefined || member === null) continue
    if (kind === true) into[field] = plain(member)
    else if (isList(kind)) {
      const [element] = kind
      into[field] = Array.isArray(member) ? member.map((one: Value) => decode(one, element, {})) : []
    } else into[field] = decode(member, kind, (into[field] as Record<string, unknown> | undefined) ?? {})
  }
  return into
}

function isObject(value: Value): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isList(kind: Struct | readonly [Struct]): kind is readonly [Struct] {
  return Array.isArray(kind)
}

function plain(value: Value): unknown {
  if (Array.isArray(value)) return value.map(plain)
  return isObject(value) ? Object.fromEntries(value.members.map(([name, one]) => [name, plain(one)])) : value
}

class Reader {
  readonly #tokens: readonly string[]
  #next = 0

  constructor(text: string) {
    this.#tokens = text.match(/"(?:\\.|[^"\\])*"|[{}[\]:,]|[^\s{}[\]:,"]+/g) ?? []
  }

  value(): Value {
    const token = this.#take()
    if (token === '{') return { members: this.#items('}', () => this.#member()) }
    if (token === '[') return this.#items(']', () => this.value())
    return JSON.parse(token) as Value
  }

  #member(): readonly [string, Value] {
    const name = JSON.parse(this.#take()) as string
    this.#take()
    return [name, this.value()]
  }

  #items<Item>(end: string, read: () => Item): Item[] {
    const items: Item[] = []
    while (this.#tokens[this.#next] !== end) {
      items.push(read())
      if (this.#tokens[this.#next] === ',') this.#next++
    }
    this.#next++
    return items
  }

  #take(): string {
    return this.#tokens[this.#next++] ?? ''
  }
}
