import { createRequire } from 'node:module'
import type { Alias, Document, LineCounter, Node } from 'yaml'
import { type Path, pathText } from './diagnostics.ts'
import { substitute } from './substitute.ts'
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

type Yaml = typeof import('yaml')

/** An entry of a mapping. */
interface Pair {
  readonly key: unknown
  readonly value: unknown
}

/** Most values that stand in the tree through aliases: aliases of aliases must not exhaust the memory. */
const MAX_ALIASED = 100_000
const MAX_DEPTH = 32

// Loaded when there is a file to parse: its 70 modules are a tenth of a start without one.
const load = createRequire(import.meta.url)

/** Parses the text of a YAML file. Errors are returned as diagnostics, never thrown. */
export function parseYamlDocument(
  text: string,
  lookup: (name: string) => string | undefined,
): ParsedDocument {
  if (text === '') return { tree: undefined, lineOf: () => 1, diagnostics: [] }
  const yaml = load('yaml') as Yaml
  const counter = new yaml.LineCounter()
  const document = yaml.parseDocument(text, { lineCounter: counter, uniqueKeys: false, prettyErrors: false })
  const yamlErrors = [...document.errors, ...document.warnings]
  if (yamlErrors.length > 0) {
    const lines = text.split('\n')
    const diagnostics = yamlErrors.map((error) => {
      const { line } = counter.linePos(error.pos[0])
      const hint = lines[line - 1]?.includes('${') ? ' (a value with ${NAME} in a [list] needs quotes)' : ''
      return { line, path: '', message: `expected YAML: ${error.message}${hint}` }
    })
    return { tree: undefined, lineOf: () => 1, diagnostics }
  }
  return new TreeBuilder(yaml, document, counter, lookup).build()
}

class TreeBuilder {
  readonly #yaml: Yaml
  readonly #document: Document
  readonly #counter: LineCounter
  readonly #lookup: (name: string) => string | undefined
  readonly #diagnostics: DocumentDiagnostic[] = []
  /** Pairs by name, of the mappings whose lines were asked for. */
  readonly #pairs = new WeakMap<readonly Pair[], ReadonlyMap<string, Pair>>()
  #targets: ReadonlyMap<Alias, Node> | undefined
  #aliased = 0
  /** Aliases around the node that is being converted. */
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
    const tree = this.#convert(this.#document.contents, [], 1)
    return { tree, lineOf: (path) => this.#lineOf(path), diagnostics: this.#diagnostics }
  }

  /** `path` is that of the node, and is reused for the next one. */
  #convert(node: unknown, path: (string | number)[], line: number): YamlNode {
    if (this.#aliases > 0 && this.#aliased++ === MAX_ALIASED)
      this.#report(path, line, `expected at most ${MAX_ALIASED} values in aliases`)
    if (this.#aliased > MAX_ALIASED) return undefined
    if (path.length > MAX_DEPTH) return this.#report(path, line, `expected at most ${MAX_DEPTH} levels`)
    if (this.#yaml.isAlias(node)) {
      const target = this.#targetOf(node)
      if (!target) return this.#report(path, line, `expected the anchor &${node.source} further up`)
      this.#aliases += 1
      const converted = this.#convert(target, path, line)
      this.#aliases -= 1
      return converted
    }
    if (this.#yaml.isMap(node)) return this.#mapping(node.items, path, line)
    if (this.#yaml.isSeq(node)) {
      return node.items.map((item, index) => {
        path.push(index)
        const converted = this.#convert(item, path, this.#lineAt(item, line))
        path.pop()
        return converted
      })
    }
    return this.#yaml.isScalar(node) ? this.#scalar(node.value, node.source, path, line) : undefined
  }

  #mapping(pairs: readonly Pair[], path: (string | number)[], around: number): YamlNode {
    const result: Record<string, YamlNode> = Object.create(null)
    for (const { key, value } of pairs) {
      const line = this.#lineAt(key, around)
      const name = this.#nameOf(key)
      if (name === '' || name === '__proto__') {
        this.#report(path, line, 'expected a name as the key')
        continue
      }
      path.push(name)
      if (name in result) {
        const firstLine = this.#lineAt(this.#pairOf(pairs, name)?.key, around)
        this.#report(path, line, `expected this key once, it is already on line ${firstLine}`)
      } else result[name] = this.#convert(value, path, line)
      path.pop()
    }
    return result
  }

  #scalar(value: unknown, source: string | undefined, path: Path, line: number): YamlNode {
    if (typeof value === 'string') {
      const substituted = substitute(value, this.#lookup)
      if ('text' in substituted) return new YamlScalar(substituted.text, value)
      for (const message of substituted.errors) this.#report(path, line, message)
      return new UnresolvedScalar(value)
    }
    if (typeof value === 'number' || typeof value === 'boolean') return new YamlScalar(value, source)
    if (value !== null) this.#report(path, line, 'expected text, a number, true or false')
    return undefined
  }

  // Found when asked for: few lines are, and a table of all of them takes as long as the tree.
  #lineOf(path: Path): number {
    let node: unknown = this.#document.contents
    let line = 1
    for (const step of path) {
      for (let depth = 0; this.#yaml.isAlias(node) && depth <= MAX_DEPTH; depth++) node = this.#targetOf(node)
      if (this.#yaml.isMap(node)) {
        const pair = this.#pairOf(node.items, String(step))
        if (!pair) return line
        line = this.#lineAt(pair.key, line)
        node = pair.value
      } else if (this.#yaml.isSeq(node)) {
        const item = node.items[Number(step)]
        if (item === undefined) return line
        line = this.#lineAt(item, line)
        node = item
      } else return line
    }
    return line
  }

  /** The first pair with a name. */
  #pairOf(pairs: readonly Pair[], name: string): Pair | undefined {
    let byName = this.#pairs.get(pairs)
    if (!byName) {
      byName = new Map(pairs.toReversed().map((pair) => [this.#nameOf(pair.key), pair]))
      this.#pairs.set(pairs, byName)
    }
    return byName.get(name)
  }

  #targetOf(alias: Alias): Node | undefined {
    this.#targets ??= aliasTargets(this.#yaml, this.#document)
    return this.#targets.get(alias)
  }

  #nameOf(key: unknown): string {
    return this.#yaml.isScalar(key) ? String(key.source ?? key.value) : ''
  }

  #lineAt(node: unknown, around: number): number {
    const range =
      this.#yaml.isScalar(node) ||
      this.#yaml.isMap(node) ||
      this.#yaml.isSeq(node) ||
      this.#yaml.isAlias(node)
        ? node.range
        : undefined
    return range ? this.#counter.linePos(range[0]).line : around
  }

  #report(path: Path, line: number, message: string): undefined {
    this.#diagnostics.push({ line, path: pathText(path), message })
  }
}

/** The node that each alias means: the last one above it that has its anchor. */
function aliasTargets({ visit, isAlias }: Yaml, document: Document): ReadonlyMap<Alias, Node> {
  const anchored = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) {
        const target = anchored.get(node.source)
        if (target) targets.set(node, target)
      } else if (node.anchor !== undefined) anchored.set(node.anchor, node)
    },
  })
  return targets
}
