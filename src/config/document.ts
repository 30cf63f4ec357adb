import type { Event, ScalarEvent, ScalarTagDefinition, YAMLException } from 'js-yaml'
import { type Path, pathText } from './diagnostics.ts'
import { substitute } from './substitute.ts'
import { loadYaml, type Yaml, YamlEvents } from './yaml-events.ts'
import { type YamlNode, UnresolvedScalar, YamlScalar } from './yaml-node.ts'

/** A diagnostic without the name of its file. */
export interface DocumentDiagnostic {
  readonly line?: number
  readonly path: string
  readonly message: string
}

/** A YAML file as a tree with its variables substituted, and the line of every node. */
export interface ParsedDocument {
  readonly tree: YamlNode
  /** The line of the node at `path`, or of its nearest ancestor. */
  readonly lineOf: (path: Path) => number
  /** Syntax errors, duplicate keys, and variables that are not set. */
  readonly diagnostics: readonly DocumentDiagnostic[]
}

/** Most values that stand in the tree through aliases: aliases of aliases must not exhaust the memory. */
const MAX_ALIASED = 100_000
const MAX_DEPTH = 32
/** Index of the event of the document's node: the first one begins the document. */
const ROOT = 1

/** Parses the text of a YAML file. Errors are returned as diagnostics, never thrown. */
export function parseYamlDocument(
  text: string,
  lookup: (name: string) => string | undefined,
): ParsedDocument {
  if (text === '') return noTree([])
  const yaml = loadYaml()
  let events: readonly Event[]
  try {
    events = yaml.parseEvents(text, {})
  } catch (error) {
    if (!(error instanceof yaml.YAMLException)) throw error
    return noTree([syntaxError(text, error)])
  }
  if (events.length === 0) return noTree([])
  const places = new YamlEvents(yaml, text, events)
  const second = events.findIndex(({ type }, index) => type === yaml.EVENT_ID.DOCUMENT && index > 0)
  if (second > 0) {
    return noTree([
      {
        line: places.lineOfDocument(second),
        path: '',
        message: 'expected one YAML document, found a second one',
      },
    ])
  }
  return new TreeBuilder(yaml, places, lookup).build()
}

function noTree(diagnostics: readonly DocumentDiagnostic[]): ParsedDocument {
  return { tree: undefined, lineOf: () => 1, diagnostics }
}

function syntaxError(text: string, { reason, mark }: YAMLException): DocumentDiagnostic {
  const { line = 0, column = 0 } = mark ?? {}
  const hint = text.split('\n')[line]?.includes('${')
    ? ' (a value with ${NAME} in a [list] needs quotes)'
    : ''
  return { line: line + 1, path: '', message: `expected YAML: ${reason}, at column ${column + 1}${hint}` }
}

class TreeBuilder {
  readonly #yaml: Yaml
  readonly #events: YamlEvents
  readonly #lookup: (name: string) => string | undefined
  readonly #diagnostics: DocumentDiagnostic[] = []
  /** Tags that plain scalars may have without saying so. */
  readonly #implicit: readonly ScalarTagDefinition[]
  /** First characters of their texts. */
  readonly #implicitFirst: ReadonlySet<string>
  /** The event that is converted next. */
  #next = ROOT
  #aliased = 0
  /** Aliases around the node that is being converted. */
  #aliases = 0

  constructor(yaml: Yaml, events: YamlEvents, lookup: (name: string) => string | undefined) {
    this.#yaml = yaml
    this.#events = events
    this.#lookup = lookup
    this.#implicit = [yaml.nullCoreTag, yaml.boolCoreTag, yaml.intCoreTag, yaml.floatCoreTag]
    this.#implicitFirst = new Set(this.#implicit.flatMap((tag) => tag.implicitFirstChars ?? []))
  }

  build(): ParsedDocument {
    const tree = this.#convert([], this.#events.offsetOf(ROOT, 0))
    return { tree, lineOf: (path) => this.#events.lineOf(path, ROOT), diagnostics: this.#diagnostics }
  }

  /** `path` is that of the next node, and is reused for later ones; errors are reported at `offset`. */
  #convert(path: (string | number)[], offset: number): YamlNode {
    if (this.#aliases > 0 && this.#aliased++ === MAX_ALIASED)
      this.#report(path, offset, `expected at most ${MAX_ALIASED} values in aliases`)
    if (this.#aliased > MAX_ALIASED) return this.#skip()
    if (path.length > MAX_DEPTH) {
      this.#report(path, offset, `expected at most ${MAX_DEPTH} levels`)
      return this.#skip()
    }
    const { ALIAS, MAPPING, SEQUENCE, SCALAR } = this.#yaml.EVENT_ID
    const event = this.#events.at(this.#next++)
    if (event.type === ALIAS) return this.#alias(this.#next - 1, path, offset)
    if (event.type === SCALAR) return this.#scalar(event, path, offset)
    if (event.type !== MAPPING && event.type !== SEQUENCE) return undefined
    const { tagStart, tagEnd } = event
    const tag = this.#events.text.slice(tagStart, tagEnd)
    if (tagStart >= 0 && !isTag(tag, event.type === MAPPING ? 'map' : 'seq'))
      this.#report(path, offset, unknownTag(tag))
    return event.type === MAPPING ? this.#mapping(path, offset) : this.#sequence(path, offset)
  }

  #skip(): undefined {
    this.#next = this.#events.after(this.#next)
  }

  #alias(alias: number, path: (string | number)[], offset: number): YamlNode {
    const target = this.#events.targetOf(alias)
    if (target === undefined) {
      const event = this.#events.at(alias)
      const name = 'anchorStart' in event ? this.#events.text.slice(event.anchorStart, event.anchorEnd) : ''
      return this.#report(path, offset, `expected the anchor &${name} further up`)
    }
    const next = this.#next
    this.#next = target
    this.#aliases += 1
    const converted = this.#convert(path, offset)
    this.#aliases -= 1
    this.#next = next
    return converted
  }

  #sequence(path: (string | number)[], around: number): YamlNode {
    const result: YamlNode[] = []
    while (!this.#ended()) {
      path.push(result.length)
      result.push(this.#convert(path, this.#events.itemOffset(this.#next, around)))
      path.pop()
    }
    return result
  }

  #mapping(path: (string | number)[], around: number): YamlNode {
    const result: Record<string, YamlNode> = Object.create(null)
    const begin = this.#next - 1
    while (!this.#ended()) {
      const offset = this.#events.offsetOf(this.#next, around)
      const name = this.#events.scalarAt(this.#next) ?? ''
      this.#skip()
      if (name === '' || name === '__proto__') {
        this.#report(path, offset, 'expected a name as the key')
        this.#skip()
        continue
      }
      path.push(name)
      if (name in result) {
        const first = this.#events.lineOf([name], begin)
        this.#report(path, offset, `expected this key once, it is already on line ${first}`)
        this.#skip()
      } else result[name] = this.#convert(path, offset)
      path.pop()
    }
    return result
  }

  /** Whether the collection ends here; passes its end. */
  #ended(): boolean {
    if (this.#events.at(this.#next).type !== this.#yaml.EVENT_ID.POP) return false
    this.#next++
    return true
  }

  #scalar(event: ScalarEvent, path: Path, offset: number): YamlNode {
    const text = this.#yaml.getScalarValue(this.#events.text, event)
    const value = this.#valueOf(event, text)
    if (typeof value === 'string') {
      const substituted = substitute(value, this.#lookup)
      if ('text' in substituted) return new YamlScalar(substituted.text, value)
      for (const message of substituted.errors) this.#report(path, offset, message)
      return new UnresolvedScalar(value)
    }
    if (typeof value === 'number' || typeof value === 'boolean') return new YamlScalar(value, text)
    if (value === null) return undefined
    return this.#report(path, offset, unknownTag(this.#events.text.slice(event.tagStart, event.tagEnd)))
  }

  /** Value by the core schema of YAML 1.2; undefined where the tag is another, or does not fit the text. */
  #valueOf({ tagStart, tagEnd, style }: ScalarEvent, text: string): unknown {
    const tag = tagStart < 0 ? undefined : this.#events.text.slice(tagStart, tagEnd)
    if (tag === undefined) {
      if (style !== this.#yaml.SCALAR_STYLE.PLAIN || !this.#implicitFirst.has(text.charAt(0))) return text
      const resolved = this.#resolved(this.#implicit, text, false)
      return resolved === undefined ? text : resolved
    }
    if (tag === '!' || isTag(tag, 'str')) return text
    const stated = this.#implicit.filter(({ tagName }) => isTag(tag, tagName.slice(CORE_PREFIX.length)))
    return this.#resolved(stated, text, true)
  }

  #resolved(tags: readonly ScalarTagDefinition[], text: string, isExplicit: boolean): unknown {
    for (const tag of tags) {
      const value: unknown = tag.resolve(text, isExplicit, tag.tagName)
      if (value !== this.#yaml.NOT_RESOLVED) return value
    }
    return undefined
  }

  #report(path: Path, offset: number, message: string): undefined {
    this.#diagnostics.push({ line: this.#events.lineAt(offset), path: pathText(path), message })
  }
}

const CORE_PREFIX = 'tag:yaml.org,2002:'

function isTag(tag: string, name: string): boolean {
  return tag === `!!${name}` || tag === `!<${CORE_PREFIX}${name}>`
}

function unknownTag(tag: string): string {
  return `expected no tag, or one of YAML's core schema that fits the value, found ${tag}`
}
