import type { Json } from '../../domain/json.ts'
import type { Settings } from '../../domain/settings.ts'
import type { StoredConfiguration, StoredSection } from '../../domain/stored-configuration.ts'
import { GatewayError } from '../../errors.ts'
import type { LiveSettings } from './live-settings.ts'

/** A change of a stored entry; an undefined value removes the entry. */
export interface Change {
  readonly section: StoredSection
  readonly name: string
  readonly value: Json | undefined
}

/** The state from which changes are computed. */
export interface OptionState {
  readonly settings: Settings
  readonly liveConfig: LiveSettings
  readonly stored: StoredConfiguration
}

/** The refusal of a change of what the file declares at that path. */
export function managed(key: string, path: string): GatewayError {
  return new GatewayError(
    'managed_by_file',
    `${key}: ${path} is set in gateway.yaml, and can be changed there alone`,
  )
}
