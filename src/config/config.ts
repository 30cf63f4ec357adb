import type { DeclaredFile } from '../domain/declared-file.ts'
import type { DeclaredUser } from '../domain/records/user.ts'
import type { Settings } from '../domain/settings.ts'
import type { Environment } from './environment.ts'
import { type ConfigFileReading, type FileTexts, readFile } from './read-file.ts'
import { deepFreeze } from './deep-freeze.ts'
import type { Diagnostic } from './diagnostics.ts'
import { type BuiltInPrices, builtInPrices } from './built-in-prices.ts'
import { type PriceFile, type PriceList, priceList } from './price-file.ts'
import { settingsOf, type VendorChannels } from './settings.ts'
import type { YamlNode } from './yaml-node.ts'

/** The operator's whole configuration, deeply frozen. */
export interface Config {
  readonly environment: Environment
  /** The settings of the file alone, without those that were changed over HTTP. */
  readonly settings: Settings
  readonly users: readonly DeclaredUser[]
  /** Diagnostics of settings that are valid but probably unintended. */
  readonly warnings: readonly Diagnostic[]
  readonly texts: FileTexts
  readonly priceFile: PriceFile | undefined
  /**
   * The file with its variables substituted, without users. Settings changed over HTTP are merged with it.
   */
  readonly fileNode: YamlNode
  /** The settings that the file declares, with line numbers, to be shown in the console. */
  readonly declared: DeclaredFile
  /** Channels made from vendor keys in the environment; none if the file declares any channel. */
  readonly environmentChannels: VendorChannels
  /**
   * The price list that applies where neither gateway.yaml nor a setting changed over HTTP states a price.
   */
  readonly prices: PriceList
  readonly builtIn: BuiltInPrices
}

/**
 * Reads the configuration file, if there is one, and fills in defaults. With `given`, these texts are read
 * instead of the files. Throws a ConfigError that contains every error.
 */
export function readConfig(environment: Environment, given?: FileTexts): Config {
  const builtIn = builtInPrices()
  return buildConfig(environment, readFile(environment, builtIn, given), builtIn)
}

/** Builds the configuration from a file that was already read. */
export function buildConfig(
  environment: Environment,
  { text, priceFile, content, channels, tree, declared, warnings, environmentChannels }: ConfigFileReading,
  builtIn: BuiltInPrices,
): Config {
  const prices = priceList(builtIn, priceFile)
  return deepFreeze({
    environment,
    settings: settingsOf(content, channels, environmentChannels, prices),
    users: content.users,
    warnings,
    texts: { text, prices: priceFile?.text },
    priceFile,
    fileNode: tree,
    declared,
    environmentChannels,
    prices,
    builtIn,
  })
}
