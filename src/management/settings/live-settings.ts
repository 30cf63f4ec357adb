import type { Channel } from '../../domain/channel.ts'
import type { StoredConfiguration } from '../../domain/stored-configuration.ts'

/** What the configuration file, or a key in the environment, says: it is changed there and nowhere else. */
export interface DeclaredSettings {
  readonly channels: readonly Channel[]
  /** Where the channels come from. */
  readonly by: 'gateway.yaml' | 'environment'
  readonly options: ReadonlySet<string>
  readonly groups: ReadonlySet<string>
  readonly models: ReadonlySet<string>
}

/** The configuration that calls go by, as far as it can be changed over HTTP. */
export interface LiveSettings {
  readonly declared: DeclaredSettings
  /**
   * The channel of that name which was set over HTTP, enabled or not; undefined where it cannot be in force.
   */
  storedChannel(name: string): Channel | undefined
  /**
   * Changes what was set over HTTP: `next` says what it would be, `write` stores it. Where that could not be
   * in force beside the file, nothing is written: `invalid_request` with the sentence of the schema. Resolves
   * when it is in force.
   */
  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T>
}
