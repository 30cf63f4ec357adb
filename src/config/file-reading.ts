import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, relative } from 'node:path'
import type { Channel } from '../domain/records/channel.ts'
import { type FileContent, readContent } from './content.ts'
import { ConfigError, type Diagnostic, pathText } from './diagnostics.ts'
import { type DocumentDiagnostic, parseYamlDocument } from './document.ts'
import type { Environment } from './environment.ts'
import { withKeyFiles } from './key-files.ts'
import type { BuiltInPrices } from './prices/built-in-prices.ts'
import { settingsOf } from './settings.ts'
import { type VendorChannels, vendorChannels } from './vendors/vendor-channels.ts'
import { warnings } from './warnings.ts'
import { child, keys, type YamlNode } from './yaml-node.ts'

/** A valid configuration file, as plain values except for the tree. */
export interface FileReading {
  /** The text of the file; empty if there is none. */
  readonly text: string
  readonly content: FileContent
  /** Channels of the file, otherwise those of the environment, with patterns replaced by names of models. */
  readonly channels: readonly Channel[]
  /** The file without its users: there may be very many, and only the database merges them. */
  readonly tree: YamlNode
  readonly warnings: readonly Diagnostic[]
  readonly environmentChannels: VendorChannels
}

/**
 * Reads and checks the configuration file, or a text given instead. Throws a ConfigError with every error in
 * it.
 */
export function readFile(environment: Environment, builtIn: BuiltInPrices, given?: string): FileReading {
  const { configFile } = environment
  const file = configFile === undefined ? 'environment' : displayPath(configFile)
  const text = given ?? contentOf(configFile, file)
  const parsed = parseYamlDocument(text, (name) => environment.variables.get(name))
  const document = withKeyFiles(parsed, dirname(configFile ?? ''))
  const { content, diagnostics } = readContent(document)
  if (!content) {
    const inOrder = diagnostics.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    throw new ConfigError(inOrder.map((diagnostic) => inFile(file, diagnostic)))
  }

  const { models, users } = content
  const environmentChannels = vendorChannels(
    content.channels.length > 0 ? new Map() : environment.vendorKeys,
    builtIn,
  )
  const declared = [...content.channels, ...environmentChannels.channels]
  const settings = settingsOf(content, declared, environmentChannels, builtIn)
  const found = warnings(settings, models, users, builtIn, document.tree).map(({ path, message }) => {
    const diagnostic = { path: pathText(path), message }
    return inFile(
      file,
      configFile === undefined ? diagnostic : { line: document.lineOf(path), ...diagnostic },
    )
  })
  const { channels } = settings
  return { text, content, channels, tree: withoutUsers(document.tree), warnings: found, environmentChannels }
}

function withoutUsers(tree: YamlNode): YamlNode {
  if (child(tree, 'users') === undefined) return tree
  const others: Record<string, YamlNode> = Object.create(null)
  for (const key of keys(tree)) if (key !== 'users') others[key] = child(tree, key)
  return others
}

function inFile(file: string, diagnostic: DocumentDiagnostic): Diagnostic {
  return { file, ...diagnostic }
}

function contentOf(file: string | undefined, name: string): string {
  if (file === undefined) return ''
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigError([{ file: name, path: '', message: `expected a file that can be read: ${reason}` }])
  }
}

/** The path of a file relative to the current folder, or absolute if it is outside. */
function displayPath(file: string): string {
  const path = relative(process.cwd(), file)
  return path.startsWith('..') || isAbsolute(path) ? file : path
}
