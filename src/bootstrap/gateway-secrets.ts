import type { Environment } from '../config/environment.ts'
import { secretOfDataFolder } from '../store/data-folder.ts'
import { deriveSecrets, type Secrets } from '../store/secrets.ts'

/** The secrets of a gateway: of GATEWAY_SECRET, else of its data folder, which must be locked. */
export function gatewaySecrets({ secret, dataDir }: Environment): Secrets {
  return deriveSecrets(secret ?? secretOfDataFolder(dataDir))
}
