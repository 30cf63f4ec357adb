import type { Environment } from '../config/environment.ts'
import { newSecretOfDataFolder, replaceSecretOfDataFolder, secretOfDataFolder } from '../store/data-folder.ts'
import { deriveSecrets, type Secrets } from '../store/secrets.ts'

/**
 * Returns the secrets of a gateway: derived from GATEWAY_SECRET, or else from the data folder, which must be
 * locked; and from the secret that replaces this one, if there is one.
 */
export function gatewaySecrets({ secret, newSecret, dataDir }: Environment): Secrets {
  if (secret !== undefined) return deriveSecrets(secret, newSecret)
  return deriveSecrets(secretOfDataFolder(dataDir), newSecret ?? newSecretOfDataFolder(dataDir))
}

/**
 * Replaces the secret in the data folder if a change of the secret was over before it could do that. `settled` are
 * the secrets after the database was opened.
 */
export function completeSecretFile({ secret, dataDir }: Environment, settled: Secrets): void {
  const next = secret === undefined ? newSecretOfDataFolder(dataDir) : undefined
  const isOver = next !== undefined && !settled.other && deriveSecrets(next).check === settled.check
  if (isOver) replaceSecretOfDataFolder(dataDir)
}
