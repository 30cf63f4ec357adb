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
  let parsed: readonly Event[]
  try {
    parsed = yaml.parseEvents(text, {})
  } catch (error) {
    if (!(error instanceof yaml.YAMLException)) throw error
    return noTree([syntaxError(text, error)])
  }
  if (parsed.length === 0) return noTree([])
  const events = new YamlEvents(yaml, text, parsed)
  const refusal = documentError(yaml, parsed, events)
  return refusal ? noTree([refusal]) : new TreeBuilder(yaml, events, lookup).build()
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

/** A text may be one document, of this version of YAML, without tags of its own. */
function documentError(
  yaml: Yaml,
  parsed: readonly Event[],
  events: YamlEvents,
): DocumentDiagnostic | undefined {
  for (const [index, event] of parsed.entries()) {
    if (event.type !== yaml.EVENT_ID.DOCUMENT) continue
    if (index > 0)
      return {
        line: events.lineOfDocument(index),
        path: '',
        message: 'expected one YAML document, found a second one',
      }
    const other = event.directives.find((one) => one.kind === 'tag' || one.version !== '1.2')
    if (!other) continue
    const found = other.kind === 'tag' ? `%TAG ${other.handle}` : `%YAML ${other.version}`
    return { line: 1, path: '', message: `expected no directive but %YAML 1.2, found ${found}` }
  }
  return undefined
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
  /** Path of the node that is converted. */
  readonly #path: (string | number)[] = []
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
    const tree = this.#convert()
    return { tree, lineOf: (path) => this.#events.lineOf(path, ROOT), diagnostics: this.#diagnostics }
  }

  #convert(): YamlNode {
    if (this.#aliases > 0 && this.#aliased++ === MAX_ALIASED)
      this.#report(`expected at most ${MAX_ALIASED} values in aliases`)
    if (this.#aliased > MAX_ALIASED) return this.#skip()
    if (this.#path.length > MAX_DEPTH) {
      this.#report(`expected at most ${MAX_DEPTH} levels`)
      return this.#skip()
    }
    const { ALIAS, MAPPING, SEQUENCE, SCALAR, DOCUMENT, POP } = this.#yaml.EVENT_ID
    const event = this.#events.at(this.#next++)
    switch (event.type) {
      case ALIAS:
        return this.#alias(event, this.#events.targetOf(this.#next - 1))
      case SCALAR:
        return this.#scalar(event)
      case MAPPING:
        this.#checkTag(event, 'map')
        return this.#mapping()
      case SEQUENCE:
        this.#checkTag(event, 'seq')
        return this.#sequence()
      case DOCUMENT:
      case POP:
        return undefined
    }
  }

  #skip(): undefined {
    this.#next = this.#events.after(this.#next)
  }

  #alias(alias: Event, target: number | undefined): YamlNode {
    if (target === undefined)
      return this.#report(`expected the anchor &${this.#events.anchorOf(alias)} further up`)
    const next = this.#next
    this.#next = target
    this.#aliases += 1
    const converted = this.#convert()
    this.#aliases -= 1
    this.#next = next
    return converted
  }

  #sequence(): YamlNode {
    const result: YamlNode[] = []
    while (!this.#ended()) {
      this.#path.push(result.length)
      result.push(this.#convert())
      this.#path.pop()
    }
    return result
  }

  #mapping(): YamlNode {
    const result: Record<string, YamlNode> = Object.create(null)
    while (!this.#ended()) {
      const key = this.#next
      const name = this.#events.scalarAt(key) ?? ''
      this.#skip()
      if (name === '' || name === '__proto__') {
        this.#report('expected a name as the key', key)
        this.#skip()
        continue
      }
      this.#path.push(name)
      this.#checkTag(this.#events.at(key), 'str')
      if (name in result) {
        const line = this.#events.lineOf(this.#path, ROOT)
        this.#report(`expected this key once, it is already on line ${line}`, key)
        this.#skip()
      } else result[name] = this.#convert()
      this.#path.pop()
    }
    return result
  }

  /** Whether the collection ends here; passes its end. */
  #ended(): boolean {
    if (this.#events.at(this.#next).type !== this.#yaml.EVENT_ID.POP) return false
    this.#next++
    return true
  }

  #scalar(event: ScalarEvent): YamlNode {
    const text = this.#yaml.getScalarValue(this.#events.text, event)
    const tag = this.#events.tagOf(event)
    const value = tag === undefined ? this.#plainValue(event, text) : this.#taggedValue(tag, text)
    if (typeof value === 'string') {
      const substituted = substitute(value, this.#lookup)
      if ('text' in substituted) return new YamlScalar(substituted.text, value)
      for (const message of substituted.errors) this.#report(message)
      return new UnresolvedScalar(value)
    }
    if (typeof value === 'number' || typeof value === 'boolean') return new YamlScalar(value, text)
    return value === null ? undefined : this.#report(unknownTag(tag))
  }

  /** Value by the core schema of YAML 1.2. */
  #plainValue({ style }: ScalarEvent, text: string): unknown {
    if (style !== this.#yaml.SCALAR_STYLE.PLAIN || !this.#implicitFirst.has(text.charAt(0))) return text
    const value = this.#resolved(this.#implicit, text, false)
    return value === undefined ? text : value
  }

  /** Value by a tag; undefined where the core schema does not know it, or the text is none of its. */
  #taggedValue(tag: string, text: string): unknown {
    if (isTag(tag, 'str')) return text
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

  #checkTag(event: Event, expected: string): void {
    const tag = this.#events.tagOf(event)
    if (tag !== undefined && !isTag(tag, expected)) this.#report(unknownTag(tag))
  }

  /** Reports at the node that is converted, or at a key beside it. */
  #report(message: string, key?: number): undefined {
    const line = this.#events.lineOf(this.#path, ROOT)
    const lineOfKey = key === undefined ? line : this.#events.lineAt(this.#events.offsetOf(key, -1)) || line
    this.#diagnostics.push({ line: lineOfKey, path: pathText(this.#path), message })
  }
}

const CORE_PREFIX = 'tag:yaml.org,2002:'

/** Whether a tag, as it is written, is one of the core schema. `!` is that of each node's kind. */
function isTag(tag: string, name: string): boolean {
  return tag === '!' || tag === `!!${name}` || tag === `!<${CORE_PREFIX}${name}>`
}

function unknownTag(tag: string | undefined): string {
  return `expected no tag, or one of YAML's core schema that fits the value, found ${tag ?? 'none'}`
}
