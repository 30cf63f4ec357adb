import { createHash } from 'node:crypto'
import { dirname, resolve } from 'node:path'
import type { Price } from '../domain/price.ts'
import type { BuiltInPrices } from './built-in-prices.ts'
import { ConfigError, type Diagnostic, pathText } from './diagnostics.ts'
import { displayPath } from './display-path.ts'
import { parseYamlDocument } from './document.ts'
import type { Environment } from './environment.ts'
import { dictionarySchema, type Issue, issuesOf } from './fields.ts'
import { invisibleNames, unlistableNames } from './invisible-names.ts'
import { priceSchema } from './prices.ts'
import { comparablePrice } from './settings.ts'
import { isMissing, readTextFile, unreadable } from './text-file.ts'
import type { YamlNode } from './yaml-node.ts'

/** The prices file, which `options.prices_file` names. `docs/configuration.md: A file of prices`. */
export interface PriceFile {
  /** Absolute path of the prices file. */
  readonly path: string
  readonly text: string
  readonly prices: ReadonlyMap<string, Price>
  readonly tree: YamlNode
  readonly warnings: readonly Diagnostic[]
}

/**
 * The prices for models without a price in gateway.yaml: those of the prices file, then the built-in ones.
 */
export interface PriceList extends BuiltInPrices {
  /** The models that the prices file lists. */
  readonly ofFile: ReadonlySet<string>
}

const pricesSchema = dictionarySchema(priceSchema, 'a mapping from model names to prices')

/**
 * Reads the prices file that `options.prices_file` names, relative to gateway.yaml; undefined if it names
 * none. With `given`, this text is read instead of the file. Throws a ConfigError that contains every error.
 */
export function readPriceFile(
  name: string,
  { configFile, variables }: Pick<Environment, 'configFile' | 'variables'>,
  refusedAt: Omit<Diagnostic, 'message'> & { readonly name: YamlNode },
  given?: string,
): PriceFile | undefined {
  if (name === '') return undefined
  const path = resolve(dirname(configFile ?? ''), name)
  const text = given ?? contentOf(path, refusedAt)
  const { tree, lineOf, diagnostics } = parseYamlDocument(text, (variable) => variables.get(variable))
  const { data, error } = pricesSchema.safeParse(tree)
  const file = displayPath(path)
  const diagnosed = ({ path: at, message }: Issue): Diagnostic => ({
    file,
    line: lineOf(at),
    path: pathText(at),
    message,
  })
  const ofNames = (find: (section: YamlNode) => readonly Issue[]): Diagnostic[] =>
    find({ models: tree }).map(({ path: [, ...at], message }) => diagnosed({ path: at, message }))
  const mistakes = [
    ...diagnostics.map((found) => ({ file, ...found })),
    ...(error ? issuesOf(error) : []).map(diagnosed),
    ...ofNames(invisibleNames),
  ]
  if (data && mistakes.length === 0)
    return { path, text, prices: data, tree, warnings: ofNames(unlistableNames) }
  throw new ConfigError(mistakes.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0)))
}

function contentOf(path: string, { name, ...at }: Parameters<typeof readPriceFile>[2]): string {
  try {
    return readTextFile(path)
  } catch (error) {
    throw new ConfigError([{ ...at, message: unreadable(error, name) }], isMissing(error) ? [path] : [])
  }
}

/** Builds the price list in which the prices file takes precedence over the built-in prices. */
export function priceList(builtIn: BuiltInPrices, file: Pick<PriceFile, 'prices'> | undefined): PriceList {
  if (!file) return { ...builtIn, ofFile: new Set() }
  const { prices } = file
  const content = [...prices].map(([name, price]) => [name, comparablePrice(price)] as const)
  const inOrder = content.toSorted(([a], [b]) => (a < b ? -1 : 1))
  return {
    ...builtIn,
    get(name, vendor) {
      const listed = builtIn.get(name, vendor)
      const price = prices.get(name)
      return price
        ? { vendor: listed?.vendor, price, contextTokens: listed?.contextTokens, uncharged: [] }
        : listed
    },
    ofFile: new Set(prices.keys()),
    version: createHash('sha256').update(builtIn.version).update(JSON.stringify(inOrder)).digest('hex'),
  }
}
