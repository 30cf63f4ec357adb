import type { Channel } from '../../domain/records/channel.ts'
import type { StoredConfiguration } from '../../domain/stored-configuration.ts'

/** The settings declared by the configuration file or the environment, which can be changed only there. */
export interface DeclaredSettings {
  readonly channels: readonly Channel[]
  /** Where the channels are declared. */
  readonly by: 'gateway.yaml' | 'environment'
  readonly options: ReadonlySet<string>
  readonly groups: ReadonlySet<string>
  readonly models: ReadonlySet<string>
}

/** The part of the live configuration that can be changed over HTTP. */
export interface LiveSettings {
  readonly declared: DeclaredSettings
  /** The stored channel with that name, enabled or disabled; undefined if it conflicts with the file. */
  storedChannel(name: string): Channel | undefined
  /** Reads the stored settings again, which another node may have changed. */
  reread(): Promise<void>
  /**
   * The channels set over HTTP, by name, as they would be after a change that is not made. Throws if the
   * change would.
   */
  preview(next: (stored: StoredConfiguration) => StoredConfiguration): Promise<ReadonlyMap<string, Channel>>
  /**
   * Changes the stored settings: `next` returns the new ones, `write` stores them. If they conflict with the
   * file, throws `invalid_request` with the schema's message and writes nothing. Resolves when they are live.
   */
  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T>
}
