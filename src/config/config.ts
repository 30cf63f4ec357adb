import { readFileSync } from 'node:fs'
import { dirname, isAbsolute, relative } from 'node:path'
import type { UserSeed } from '../domain/seed.ts'
import type { Settings } from '../domain/settings.ts'
import { type BuiltInPrices, builtInPrices } from './prices/built-in-prices.ts'
import { readContent } from './content.ts'
import { type DocumentDiagnostic, parseYamlDocument } from './document.ts'
import type { Environment } from './environment.ts'
import { freeze } from './freeze.ts'
import { withKeyFiles } from './key-files.ts'
import { ConfigError, type Diagnostic, pathText } from './diagnostics.ts'
import { settingsOf } from './settings.ts'
import { type VendorChannels, vendorChannels } from './vendors/vendor-channels.ts'
import { warnings } from './warnings.ts'
import type { YamlNode } from './yaml-node.ts'

/** All decisions of the operator, deeply frozen. */
export interface Config {
  readonly environment: Environment
  /** The settings of the file alone, without those set over HTTP. */
  readonly settings: Settings
  readonly users: readonly UserSeed[]
  /** Diagnostics of settings that are valid but probably not intended. */
  readonly warnings: readonly Diagnostic[]
  /** The file as it was read; empty where there is none. */
  readonly fileText: string
  /** The file with its variables substituted, for merging with settings set over HTTP. */
  readonly fileNode: YamlNode
  /** Channels made from vendor keys in the environment; none where the file declares any channel. */
  readonly environmentChannels: VendorChannels
  readonly builtIn: BuiltInPrices
}

/**
 * Reads the configuration file, if there is one, over the defaults. May be called again when the file has
 * changed. `given`: the text to read in place of the file's. Throws a ConfigError with every error in it.
 */
export function readConfig(environment: Environment, given?: string): Config {
  const { configFile } = environment
  const file = configFile === undefined ? 'environment' : displayPath(configFile)
  const fileText = given ?? contentOf(configFile, file)
  const parsed = parseYamlDocument(fileText, (name) => environment.variables.get(name))
  const document = withKeyFiles(parsed, dirname(configFile ?? ''))
  const { content, diagnostics } = readContent(document)
  if (!content) {
    const inOrder = diagnostics.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    throw new ConfigError(inOrder.map((diagnostic) => inFile(file, diagnostic)))
  }

  const { models, channels, users } = content
  const builtIn = builtInPrices()
  const environmentChannels = vendorChannels(
    channels.length > 0 ? new Map() : environment.vendorKeys,
    builtIn,
  )
  const settings = settingsOf(
    content,
    [...channels, ...environmentChannels.channels],
    environmentChannels,
    builtIn,
  )
  const found = warnings(settings, models, users, builtIn, document.tree).map(({ path, message }) => {
    const diagnostic = { path: pathText(path), message }
    return inFile(
      file,
      configFile === undefined ? diagnostic : { line: document.lineOf(path), ...diagnostic },
    )
  })
  return freeze({
    environment,
    settings,
    users,
    warnings: found,
    fileText,
    fileNode: document.tree,
    environmentChannels,
    builtIn,
  })
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

/** A file's path relative to the current folder, or absolute where the file lies outside it. */
function displayPath(file: string): string {
  const path = relative(process.cwd(), file)
  return path.startsWith('..') || isAbsolute(path) ? file : path
}
