import type { Guard } from '../domain/guard.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Json } from '../domain/json.ts'
import type { Price } from '../domain/price.ts'
import type { RefusedConfiguration, Settings, StoredConfiguration } from '../domain/settings.ts'
import { invalidInput } from '../errors.ts'
import type { BuiltInPrice, DeclaredSettings, LiveSettings } from '../management/services.ts'
import type { Store } from '../store/store.ts'
import type { Config } from './config.ts'
import {
  type IgnoredStoredSetting,
  type MergedSettings,
  parseGuardSetting,
  mergeStoredSettings,
  parsePriceSetting,
} from './merge-stored-settings.ts'
import { PRICE_DATA } from './built-in-prices.ts'
import { childOfNode, keysOfNode } from './yaml-node.ts'

/** The part of the store from which stored settings are read. */
type Stored = Pick<Store, 'read'>

/**
 * The live configuration: the file merged with the settings that were changed over HTTP. Every change
 * replaces the settings object, so that a call keeps the settings with which it began. Changes are made one
 * after another.
 */
export class LiveConfig implements LiveSettings {
  readonly #store: Stored
  readonly #warn: (sentence: string) => void
  readonly #onChange: () => void
  #file: Config
  #merged: MergedSettings
  #tail: Promise<unknown> = Promise.resolve()

  private constructor(
    store: Stored,
    file: Config,
    merged: MergedSettings,
    warn: (sentence: string) => void,
    onChange: () => void,
  ) {
    this.#store = store
    this.#onChange = onChange
    this.#file = file
    this.#merged = merged
    this.#warn = warn
  }

  /**
   * `warn` is called for stored settings that are ignored because they conflict with the file. `onChange` is
   * called after this node has stored a change that other nodes should read.
   */
  static async open(
    store: Stored,
    file: Config,
    warn: (sentence: string) => void,
    onChange: () => void = () => {},
  ): Promise<LiveConfig> {
    const merged = mergeStoredSettings(file, await store.read('storedConfiguration'))
    const liveConfig = new LiveConfig(store, file, merged, warn, onChange)
    liveConfig.#warnIgnored(merged.ignored)
    return liveConfig
  }

  get settings(): Settings {
    return this.#merged.settings
  }

  /** The configuration file that was refused since one was last applied; undefined if none was. */
  refused: RefusedConfiguration | undefined

  /** The configuration as last read from the file. */
  get file(): Config {
    return this.#file
  }

  get declared(): DeclaredSettings {
    const { fileNode, settings, environmentChannels, prices, declared } = this.#file
    const models = childOfNode(fileNode, 'models')
    const named = (section: string): ReadonlySet<string> =>
      new Set(keysOfNode(childOfNode(fileNode, section)))
    return {
      channels: settings.channels,
      by: environmentChannels.channels.length > 0 ? 'environment' : 'gateway.yaml',
      options: named('options'),
      groups: named('groups'),
      models: named('models'),
      prices: new Set(
        keysOfNode(models).filter((model) => childOfNode(childOfNode(models, model), 'price') !== undefined),
      ),
      listed: prices.ofFile,
      file: declared,
    }
  }

  get drained(): ReadonlySet<number> {
    return this.#merged.drained
  }

  storedChannel(name: string): Channel | undefined {
    return this.#merged.storedChannels.get(name)
  }

  /** Replaces the configuration of the file. `check` runs first; if it rejects, nothing changes. */
  replaceFile(file: Config, check: () => Promise<void>): Promise<void> {
    return this.#serialized(async () => {
      await check()
      const merged = mergeStoredSettings(file, await this.#store.read('storedConfiguration'))
      this.#file = file
      this.#warnIgnored(merged.ignored)
      this.#merged = merged
    })
  }

  builtInPrice(model: string, vendor: string | undefined): BuiltInPrice {
    const { builtIn } = this.#file
    const known = builtIn.get(model, vendor)
    return { price: known?.price, vendor: known?.vendor, source: PRICE_DATA.source, date: builtIn.date }
  }

  readPrice(value: Json): Price {
    return parsePriceSetting(value)
  }

  readGuard(value: Json): Guard {
    return parseGuardSetting(value)
  }

  async preview(
    next: (stored: StoredConfiguration) => StoredConfiguration,
  ): Promise<ReadonlyMap<string, Channel>> {
    const before = await this.#store.read('storedConfiguration')
    const { storedChannels, ignored } = mergeStoredSettings(this.#file, next(before), before)
    this.#refuseNewlyIgnored(ignored)
    return storedChannels
  }

  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T> {
    return this.#serialized(async () => {
      const before = await this.#read()
      const merged = mergeStoredSettings(this.#file, next(before), before)
      this.#refuseNewlyIgnored(merged.ignored)
      const result = await write().catch(async (error: unknown) => {
        // If another node has changed it since, the refusal has what is stored now.
        await this.#read().catch(() => {})
        throw error
      })
      this.#merged = merged
      this.#onChange()
      return result
    })
  }

  /** Reads the stored settings again, because another node may have changed them. */
  reread(): Promise<void> {
    return this.#serialized(async () => void (await this.#read()))
  }

  async #read(): Promise<StoredConfiguration> {
    const stored = await this.#store.read('storedConfiguration')
    const merged = mergeStoredSettings(this.#file, stored)
    this.#warnIgnored(this.#newlyIgnored(merged.ignored))
    this.#merged = merged
    return stored
  }

  // Entries that were ignored before this change are no reason to refuse it.
  #refuseNewlyIgnored(ignored: readonly IgnoredStoredSetting[]): void {
    const refused = this.#newlyIgnored(ignored)
    if (refused.length === 0) return
    const several = new Set(refused.map(({ name }) => name)).size > 1
    const sentences = refused.map(({ name, message }) => (several ? `${name}: ${message}` : message))
    throw invalidInput(sentences)
  }

  #newlyIgnored(ignored: readonly IgnoredStoredSetting[]): readonly IgnoredStoredSetting[] {
    const known = new Set(this.#merged.ignored.map(identity))
    return ignored.filter((one) => !known.has(identity(one)))
  }

  #warnIgnored(ignored: readonly IgnoredStoredSetting[]): void {
    for (const { section, name, message } of ignored) {
      this.#warn(`${section} ${name}, set over HTTP, is left out: ${message}`)
    }
  }

  #serialized<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work)
    this.#tail = result.catch(() => {})
    return result
  }
}

function identity({ section, name, content }: IgnoredStoredSetting): string {
  return JSON.stringify([section, name, content])
}
