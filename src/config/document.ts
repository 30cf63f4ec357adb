import { createRequire } from 'node:module'
import type { Alias, CST, Document, LineCounter, Node, Pair } from 'yaml'
import { type Path, pathText } from './diagnostics.ts'
import { isMapping, UnresolvedScalar, type YamlNode, YamlScalar } from './yaml-node.ts'

/** A diagnostic that does not name its file. */
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

type Yaml = typeof import('yaml')

/** Maximum number of nodes that YAML aliases may add, so that nested aliases cannot exhaust the memory. */
const MAX_ALIASED = 100_000
const MAX_DEPTH = 32
const SYNTAX = 'expected YAML: '
const EXPECTED_NAME = 'expected a name as the key'
const TOO_DEEP = `expected at most ${MAX_DEPTH} levels`

// Loaded only if there is a file to parse, because the library has 70 modules.
const load = createRequire(import.meta.url)

/** Parses the text of a YAML file. Errors are returned as diagnostics, not thrown. */
export function parseYamlDocument(
  text: string,
  lookup: (name: string) => string | undefined,
): ParsedDocument {
  if (text === '') return noTree([])
  const yaml = load('yaml') as Yaml
  const counter = new yaml.LineCounter()
  const refused = (offset: number, message: string): ParsedDocument => {
    const { line, col } = counter.linePos(offset)
    const hint = text.split('\n')[line - 1]?.includes('${')
      ? ' (a value with ${NAME} in a [list] needs quotes)'
      : ''
    const where = message.startsWith(SYNTAX) ? `, at column ${col}${hint}` : ''
    return noTree([{ line, path: '', message: message + where }])
  }

  const tokens = [...new yaml.Parser(counter.addNewLine).parse(text)]
  // The composer recurses for each level; some thousand levels would overflow the stack and end the process.
  const deep = tokens.map((token) => tooDeep(token, 0)).find((token) => token !== undefined)
  if (deep) return refused(deep.offset, TOO_DEEP)
  // Duplicate keys are found below, where the line of the first one is known.
  const composer = new yaml.Composer({ resolveKnownTags: false, stringKeys: true, uniqueKeys: false })
  const [document, second] = composer.compose(tokens)
  if (!document) return noTree([])
  const error = document.errors[0] ?? document.warnings[0]
  if (error?.code === 'NON_STRING_KEY') return refused(error.pos[0], EXPECTED_NAME)
  if (error) return refused(error.pos[0], SYNTAX + error.message)
  if (second) return refused(second.range[0], 'expected one YAML document, found a second one')
  const directive = unknownDirective(document)
  if (directive !== undefined) return refused(0, `expected no directive but %YAML 1.2, found ${directive}`)
  return new TreeBuilder(yaml, document, counter, lookup).build()
}

function noTree(diagnostics: readonly DocumentDiagnostic[]): ParsedDocument {
  return { tree: undefined, lineOf: () => 1, diagnostics }
}

/**
 * The first mapping or list in a token of the YAML parser that is nested too deeply; undefined if there is
 * none.
 */
function tooDeep(token: CST.Token | null | undefined, depth: number): CST.Token | undefined {
  if (token?.type === 'document') return tooDeep(token.value, depth)
  if (!token || !('items' in token)) return undefined
  if (depth > MAX_DEPTH) return token
  for (const { key, value } of token.items) {
    const found = tooDeep(key, depth + 1) ?? tooDeep(value, depth + 1)
    if (found) return found
  }
  return undefined
}

/** A YAML directive that would change the meaning of the file; undefined if there is none. */
function unknownDirective({ directives }: Document): string | undefined {
  const version = directives?.yaml.version ?? '1.2'
  if (version !== '1.2') return `%YAML ${version}`
  const handle = Object.keys(directives?.tags ?? {}).find((one) => one !== '!!')
  return handle === undefined ? undefined : `%TAG ${handle}`
}

/**
 * Converts the YAML library's document to the tree of nodes from which the configuration's sections are read.
 */
class TreeBuilder {
  readonly #yaml: Yaml
  readonly #document: Document
  readonly #counter: LineCounter
  readonly #lookup: (name: string) => string | undefined
  readonly #diagnostics: DocumentDiagnostic[] = []
  /** For each mapping and list: the offset of every entry in the file's text. */
  readonly #offsets = new Map<YamlNode, Map<string | number, number>>()
  /** The latest node with each YAML anchor (`&name`). */
  readonly #anchors = new Map<string, Node>()
  /**
   * Nodes to which aliases (`*name`) refer. Recorded at each alias, because an anchor may be redefined later.
   */
  readonly #targets = new Map<Alias, Node | undefined>()
  #aliased = 0
  /** Number of aliases that enclose the current node. */
  #aliases = 0

  constructor(
    yaml: Yaml,
    document: Document,
    counter: LineCounter,
    lookup: (name: string) => string | undefined,
  ) {
    this.#yaml = yaml
    this.#document = document
    this.#counter = counter
    this.#lookup = lookup
  }

  build(): ParsedDocument {
    const { contents } = this.#document
    const begin = contents?.range?.[0] ?? 0
    const tree = this.#convert(contents, [], begin)
    const lineOf = (path: Path): number => {
      let offset = begin
      let node: YamlNode = tree
      for (const step of path) {
        const next = this.#offsets.get(node)?.get(step)
        if (next === undefined) break
        offset = next
        node = Array.isArray(node) ? node[Number(step)] : isMapping(node) ? node[step] : undefined
      }
      return this.#lineAt(offset)
    }
    return { tree, lineOf, diagnostics: this.#diagnostics }
  }

  /**
   * Converts a YAML node. `path` is its path in the file. The array is reused for the next node, so it must
   * be copied to be kept.
   */
  #convert(node: unknown, path: (string | number)[], offset: number): YamlNode {
    if (this.#aliases > 0 && this.#aliased++ === MAX_ALIASED)
      this.#report(path, offset, `expected at most ${MAX_ALIASED} values in aliases`)
    if (this.#aliased > MAX_ALIASED) return undefined
    if (path.length > MAX_DEPTH) return this.#report(path, offset, TOO_DEEP)
    if (this.#yaml.isAlias(node)) return this.#alias(node, path, offset)
    if (!this.#yaml.isNode(node)) return undefined
    if (this.#aliases === 0 && node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    if (this.#yaml.isMap(node)) return this.#mapping(node.items, path, offset)
    if (this.#yaml.isSeq(node)) return this.#list(node.items, path, offset)
    return this.#yaml.isScalar(node) ? this.#scalar(node.value, node.source, path, offset) : undefined
  }

  #alias(alias: Alias, path: (string | number)[], offset: number): YamlNode {
    if (!this.#targets.has(alias)) this.#targets.set(alias, this.#anchors.get(alias.source))
    const target = this.#targets.get(alias)
    if (!target) return this.#report(path, offset, `expected the anchor &${alias.source} further up`)
    this.#aliases += 1
    const converted = this.#convert(target, path, offset)
    this.#aliases -= 1
    return converted
  }

  #list(items: readonly unknown[], path: (string | number)[], around: number): YamlNode {
    const result: YamlNode[] = []
    const offsets = new Map<number, number>()
    this.#offsets.set(result, offsets)
    for (const [index, item] of items.entries()) {
      const offset = (item as Node).range?.[0] ?? around
      offsets.set(index, offset)
      path.push(index)
      result.push(this.#convert(item, path, offset))
      path.pop()
    }
    return result
  }

  #mapping(pairs: readonly Pair[], path: (string | number)[], around: number): YamlNode {
    const result: Record<string, YamlNode> = Object.create(null)
    const offsets = new Map<string, number>()
    this.#offsets.set(result, offsets)
    for (const { key, value } of pairs) {
      const name = this.#yaml.isScalar(key) ? String(key.value) : ''
      const offset = (key as Node).range?.[0] ?? around
      if (name === '' || name === '__proto__') {
        this.#report(path, offset, EXPECTED_NAME)
        continue
      }
      path.push(name)
      const first = offsets.get(name)
      if (first === undefined) {
        offsets.set(name, offset)
        result[name] = this.#convert(value, path, offset)
      } else
        this.#report(path, offset, `expected this key once, it is already on line ${this.#lineAt(first)}`)
      path.pop()
    }
    return result
  }

  #scalar(value: unknown, source: string | undefined, path: Path, offset: number): YamlNode {
    if (typeof value === 'number' || typeof value === 'boolean') return new YamlScalar(value, source)
    if (typeof value !== 'string') return undefined
    const substituted = substituteVariables(value, this.#lookup)
    if ('text' in substituted) return new YamlScalar(substituted.text, value)
    for (const message of substituted.errors) this.#report(path, offset, message)
    return new UnresolvedScalar(value)
  }

  #lineAt(offset: number): number {
    return this.#counter.linePos(offset).line
  }

  #report(path: Path, offset: number, message: string): undefined {
    this.#diagnostics.push({ line: this.#lineAt(offset), path: pathText(path), message })
  }
}

/** A text with its variables substituted, or the errors. */
type Substituted = { readonly text: string } | { readonly errors: readonly string[] }

const REFERENCE = /\$\$\{|\$\{([^}]*)\}?/g
/** A name, and the text that takes the place of a variable that is not set or empty. */
const NAME = /^([A-Za-z_]\w*)(?::-(.*))?$/s

/**
 * Substitutes `${NAME}` and `${NAME:-default}`; `$${` is a literal `${`. The value of a variable is not
 * substituted again.
 */
export function substituteVariables(text: string, lookup: (name: string) => string | undefined): Substituted {
  if (!text.includes('${')) return { text }
  const errors: string[] = []
  const result = text.replaceAll(REFERENCE, (found: string, inner: string | undefined) => {
    if (found === '$${') return '${'
    const [, name, otherwise] = NAME.exec(inner ?? '') ?? []
    if (name === undefined || !found.endsWith('}')) {
      errors.push('expected ${NAME} or ${NAME:-default}; a literal ${ is written $${')
      return found
    }
    const value = otherwise === undefined ? lookup(name) : lookup(name) || otherwise
    if (value === undefined) errors.push(`expected the environment variable ${name} to be set`)
    return value ?? found
  })
  return errors.length > 0 ? { errors } : { text: result }
}
