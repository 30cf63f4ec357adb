import { readFileSync } from 'node:fs'
import { isAbsolute, relative } from 'node:path'
import type { UserSeed } from '../domain/seed.ts'
import type { Settings } from '../domain/settings.ts'
import { type BuiltInPrices, builtInPrices } from './prices/built-in-prices.ts'
import { readContent } from './content.ts'
import { type DocumentDiagnostic, parseYamlDocument } from './document.ts'
import type { Environment } from './environment.ts'
import { freeze } from './freeze.ts'
import { ConfigError, type Diagnostic, pathText } from './diagnostics.ts'
import { settingsOf } from './settings.ts'
import { type VendorChannels, vendorChannels } from './vendors/vendor-channels.ts'
import { warnings } from './warnings.ts'
import type { YamlNode } from './yaml-node.ts'

/** Everything that the operator decided, frozen throughout. */
export interface Config {
  readonly environment: Environment
  /** Of the file alone. */
  readonly settings: Settings
  readonly users: readonly UserSeed[]
  /** What is allowed but probably not meant. */
  readonly warnings: readonly Diagnostic[]
  /** The file with its variables put in, for what is set over HTTP to be laid under it. */
  readonly fileNode: YamlNode
  /** The channels that keys in the environment make; none where the file declares any. */
  readonly environmentChannels: VendorChannels
  readonly builtIn: BuiltInPrices
}

/**
 * Reads the configuration file, if there is one, over the defaults. May be called again when the file has
 * changed. Throws a ConfigError with every mistake in the file.
 */
export function readConfig(environment: Environment): Config {
  const { configFile } = environment
  const file = configFile === undefined ? 'environment' : displayPath(configFile)
  const document = parseYamlDocument(contentOf(configFile, file), (name) => environment.variables.get(name))
  const { content, remarks } = readContent(document)
  if (!content) {
    const inOrder = remarks.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    throw new ConfigError(inOrder.map((remark) => inFile(file, remark)))
  }

  const { models, channels, users } = content
  const builtIn = builtInPrices()
  const fromKeys = vendorChannels(channels.length > 0 ? new Map() : environment.vendorKeys, builtIn)
  const settings = settingsOf(content, [...channels, ...fromKeys.channels], fromKeys, builtIn)
  const found = warnings(settings, models, users, builtIn, document.tree).map(({ path, message }) => {
    const remark = { path: pathText(path), message }
    return inFile(file, configFile === undefined ? remark : { line: document.lineOf(path), ...remark })
  })
  return freeze({ environment, settings, users, warnings: found, fileNode: document.tree, environmentChannels: fromKeys, builtIn })
}

function inFile(file: string, remark: DocumentDiagnostic): Diagnostic {
  return { file, ...remark }
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

/** A file as a person in the current folder would name it. */
function displayPath(file: string): string {
  const near = relative(process.cwd(), file)
  return near.startsWith('..') || isAbsolute(near) ? file : near
}
