import type { Channel } from '../../domain/records/channel.ts'
import type { StoredConfiguration } from '../../domain/stored-configuration.ts'

/** The settings declared by the configuration file or the environment, which are changed there alone. */
export interface DeclaredSettings {
  readonly channels: readonly Channel[]
  /** The source of the channels. */
  readonly by: 'gateway.yaml' | 'environment'
  readonly options: ReadonlySet<string>
  readonly groups: ReadonlySet<string>
  readonly models: ReadonlySet<string>
}

/** The part of the live configuration that can be changed over HTTP. */
export interface LiveSettings {
  readonly declared: DeclaredSettings
  /** The stored channel of that name, enabled or not; undefined where it conflicts with the file. */
  storedChannel(name: string): Channel | undefined
  /** Reads the stored settings again, which another node may have changed. */
  reread(): Promise<void>
  /**
   * The channels set over HTTP as a change would make them, by name; nothing changes. Throws where the change
   * would.
   */
  preview(next: (stored: StoredConfiguration) => StoredConfiguration): Promise<ReadonlyMap<string, Channel>>
  /**
   * Changes the stored settings: `next` returns the new ones, `write` stores them. Throws `invalid_request`
   * with the schema's message, and writes nothing, where they conflict with the file. Resolves when they are
   * live.
   */
  change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T>
}
