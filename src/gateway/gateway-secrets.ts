import type { Environment } from '../config/environment.ts'
import { secretOfDataFolder } from '../store/data-folder.ts'
import { deriveSecrets, type Secrets } from '../store/secrets.ts'

/**
 * Returns the secrets of a gateway: derived from GATEWAY_SECRET, or else from the data folder, which must be
 * locked.
 */
export function gatewaySecrets({ secret, dataDir }: Environment): Secrets {
  return deriveSecrets(secret ?? secretOfDataFolder(dataDir))
}
