import type { Channel } from '../domain/channel.ts'
import type { Settings } from '../domain/settings.ts'
import type { StoredConfiguration } from '../domain/stored-configuration.ts'
import { GatewayError } from '../errors.ts'
import type { DeclaredSettings, LiveSettings } from '../management/settings/live-settings.ts'
import type { Store } from '../store/store.ts'
import type { Config } from './config.ts'
import { type IgnoredEntry, type MergedSettings, mergeLayers } from './merge-layers.ts'
import { child, keys } from './yaml-node.ts'

/** What of the store is needed to know the settings. */
type Stored = Pick<Store, 'read'>

/**
 * The configuration in force: the file, and beneath it what was set over HTTP. It is replaced whole, so that
 * a call keeps the settings it began with. What replaces it comes one at a time, in order.
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
    overlaid: MergedSettings,
    warn: (sentence: string) => void,
    changed: () => void,
  ) {
    this.#store = store
    this.#onChange = changed
    this.#file = file
    this.#merged = overlaid
    this.#warn = warn
  }

  /**
   * `warn` hears of what was set over HTTP and cannot be in force beside the file; `changed`, when this node
   * has stored something that other nodes should read.
   */
  static async open(
    store: Stored,
    file: Config,
    warn: (sentence: string) => void,
    changed: () => void = () => {},
  ): Promise<LiveConfig> {
    const overlaid = mergeLayers(file, await store.read('storedConfiguration'))
    const inForce = new LiveConfig(store, file, overlaid, warn, changed)
    inForce.#warnIgnored(overlaid.ignored)
    return inForce
  }

  get settings(): Settings {
    return this.#merged.settings
  }

  /** As it was read last. */
  get file(): Config {
    return this.#file
  }

  get declared(): DeclaredSettings {
    const { fileNode: tree, settings, environmentChannels: fromKeys } = this.#file
    const named = (section: string): ReadonlySet<string> => new Set(keys(child(tree, section)))
    return {
      channels: settings.channels,
      by: fromKeys.channels.length > 0 ? 'environment' : 'gateway.yaml',
      options: named('options'),
      groups: named('groups'),
      models: named('models'),
    }
  }

  storedChannel(name: string): Channel | undefined {
    return this.#merged.storedChannels.get(name)
  }

  /**
   * Takes over another reading of the file. `prepare` runs before, and may refuse it: then all stays as it
   * was.
   */
  replaceFile(file: Config, check: () => Promise<void>): Promise<void> {
    return this.#serialized(async () => {
      await check()
      const overlaid = mergeLayers(file, await this.#store.read('storedConfiguration'))
      this.#file = file
      this.#warnIgnored(overlaid.ignored)
      this.#merged = overlaid
    })
  }

  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T> {
    return this.#serialized(async () => {
      const wanted = mergeLayers(this.#file, next(await this.#store.read('storedConfiguration')))
      this.#refuseNewlyIgnored(wanted.ignored)
      const result = await write()
      this.#merged = wanted
      this.#onChange()
      return result
    })
  }

  /** Reads what is stored anew: another node may have changed it. */
  reread(): Promise<void> {
    return this.#serialized(async () => {
      const overlaid = mergeLayers(this.#file, await this.#store.read('storedConfiguration'))
      this.#warnIgnored(this.#newlyIgnored(overlaid.ignored))
      this.#merged = overlaid
    })
  }

  // What is left out already, and as it was, is no reason to refuse a change of something else.
  #refuseNewlyIgnored(leftOut: readonly IgnoredEntry[]): void {
    const refused = this.#newlyIgnored(leftOut)
    if (refused.length === 0) return
    const several = new Set(refused.map(({ name }) => name)).size > 1
    const sentences = refused.map(({ name, message }) => (several ? `${name}: ${message}` : message))
    throw new GatewayError('invalid_request', sentences.join('; '))
  }

  #newlyIgnored(leftOut: readonly IgnoredEntry[]): readonly IgnoredEntry[] {
    const known = new Set(this.#merged.ignored.map(identity))
    return leftOut.filter((one) => !known.has(identity(one)))
  }

  #warnIgnored(leftOut: readonly IgnoredEntry[]): void {
    for (const { section, name, message } of leftOut) {
      this.#warn(`${section} ${name}, set over HTTP, is left out: ${message}`)
    }
  }

  #serialized<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work)
    this.#tail = result.catch(() => {})
    return result
  }
}

function identity({ section, name, content }: IgnoredEntry): string {
  return JSON.stringify([section, name, content])
}
