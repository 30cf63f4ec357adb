import type { Channel } from '../domain/channel.ts'
import type { Settings } from '../domain/settings.ts'
import type { StoredConfiguration } from '../domain/stored-configuration.ts'
import { GatewayError } from '../errors.ts'
import type { Declared, SettingsInForce } from '../management/settings/live-settings.ts'
import type { Store } from '../store/store.ts'
import type { Config } from './config.ts'
import { type LeftOut, type Overlaid, overlay } from './merge-layers.ts'
import { child, keys } from './yaml-node.ts'

/** What of the store is needed to know the settings. */
type Stored = Pick<Store, 'read'>

/**
 * The configuration in force: the file, and beneath it what was set over HTTP. It is replaced whole, so that
 * a call keeps the settings it began with. What replaces it comes one at a time, in order.
 */
export class InForce implements SettingsInForce {
  readonly #store: Stored
  readonly #warn: (sentence: string) => void
  readonly #changed: () => void
  #file: Config
  #overlaid: Overlaid
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(
    store: Stored,
    file: Config,
    overlaid: Overlaid,
    warn: (sentence: string) => void,
    changed: () => void,
  ) {
    this.#store = store
    this.#changed = changed
    this.#file = file
    this.#overlaid = overlaid
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
  ): Promise<InForce> {
    const overlaid = overlay(file, await store.read('storedConfiguration'))
    const inForce = new InForce(store, file, overlaid, warn, changed)
    inForce.#tell(overlaid.leftOut)
    return inForce
  }

  get settings(): Settings {
    return this.#overlaid.settings
  }

  /** As it was read last. */
  get file(): Config {
    return this.#file
  }

  get declared(): Declared {
    const { tree, settings, fromKeys } = this.#file
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
    return this.#overlaid.stored.get(name)
  }

  /**
   * Takes over another reading of the file. `prepare` runs before, and may refuse it: then all stays as it
   * was.
   */
  replaceFile(file: Config, prepare: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      await prepare()
      const overlaid = overlay(file, await this.#store.read('storedConfiguration'))
      this.#file = file
      this.#tell(overlaid.leftOut)
      this.#overlaid = overlaid
    })
  }

  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const wanted = overlay(this.#file, next(await this.#store.read('storedConfiguration')))
      this.#refuseWorse(wanted.leftOut)
      const result = await write()
      this.#overlaid = wanted
      this.#changed()
      return result
    })
  }

  /** Reads what is stored anew: another node may have changed it. */
  reread(): Promise<void> {
    return this.#inTurn(async () => {
      const overlaid = overlay(this.#file, await this.#store.read('storedConfiguration'))
      this.#tell(this.#unknown(overlaid.leftOut))
      this.#overlaid = overlaid
    })
  }

  // What is left out already, and as it was, is no reason to refuse a change of something else.
  #refuseWorse(leftOut: readonly LeftOut[]): void {
    const refused = this.#unknown(leftOut)
    if (refused.length === 0) return
    const several = new Set(refused.map(({ name }) => name)).size > 1
    const sentences = refused.map(({ name, message }) => (several ? `${name}: ${message}` : message))
    throw new GatewayError('invalid_request', sentences.join('; '))
  }

  #unknown(leftOut: readonly LeftOut[]): readonly LeftOut[] {
    const known = new Set(this.#overlaid.leftOut.map(identity))
    return leftOut.filter((one) => !known.has(identity(one)))
  }

  #tell(leftOut: readonly LeftOut[]): void {
    for (const { section, name, message } of leftOut) {
      this.#warn(`${section} ${name}, set over HTTP, is left out: ${message}`)
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => {})
    return result
  }
}

function identity({ section, name, content }: LeftOut): string {
  return JSON.stringify([section, name, content])
}
