import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { newSecretOfDataFolder, replaceSecretOfDataFolder, secretOfDataFolder } from './data-folder.ts'
import { isDatabaseOfGateway } from './is-database-of-gateway.ts'
import { deriveSecrets, type Secrets } from './secrets.ts'

/** The part of a gateway's environment that says where its secrets are. */
interface SecretEnvironment {
  readonly secret: string | undefined
  readonly newSecret: string | undefined
  readonly dataDir: string
}

/**
 * Returns the secrets of a gateway: derived from GATEWAY_SECRET, or else from the data folder, which must be
 * locked; and from the secret that replaces this one, if there is one. A secret is made only for a database that has none:
 * beside a database that has one, the new file would look like the missing secret.
 */
export async function gatewaySecrets(
  environment: SecretEnvironment & { readonly databaseUrl: string },
): Promise<Secrets> {
  const given = secretsIfAny(environment)
  if (given) return given
  const { dataDir, databaseUrl } = environment
  if (await isDatabaseOfGateway(databaseUrl))
    throw new Error(
      `GATEWAY_SECRET is not set, and there is no file "secret" in ${dataDir}: set it to the secret that the ` +
        'database was made with, or put that file back',
    )
  return secretsIn(environment)
}

/** The secrets of a gateway as `gatewaySecrets` returns them; undefined where that would have to make one. */
export function secretsIfAny(environment: SecretEnvironment): Secrets | undefined {
  const isGiven = environment.secret !== undefined || existsSync(join(environment.dataDir, 'secret'))
  return isGiven ? secretsIn(environment) : undefined
}

function secretsIn({ secret, newSecret, dataDir }: SecretEnvironment): Secrets {
  if (secret !== undefined) return deriveSecrets(secret, newSecret)
  return deriveSecrets(secretOfDataFolder(dataDir), newSecret ?? newSecretOfDataFolder(dataDir))
}

/**
 * Replaces the secret in the data folder if a change of the secret was over before it could do that. `settled` are
 * the secrets after the database was opened. Returns the file in which the old secret stays, if it was replaced.
 */
export function completeSecretFile(
  { secret, dataDir }: SecretEnvironment,
  settled: Secrets,
): string | undefined {
  const next = secret === undefined ? newSecretOfDataFolder(dataDir) : undefined
  const isOver = next !== undefined && !settled.other && deriveSecrets(next).check === settled.check
  if (!isOver) return undefined
  return replaceSecretOfDataFolder(dataDir, deriveSecrets(secretOfDataFolder(dataDir)).keyId)
}

/**
 * The same for a start and for commands with other work. They do not fail where the file cannot be replaced, as on a
 * full disk: the next start tries again, and until then the secret is read from `secret.new`.
 */
export function endSecretChange(
  environment: SecretEnvironment,
  settled: Secrets,
  warn: (sentence: string) => void,
): void {
  try {
    const kept = completeSecretFile(environment, settled)
    if (kept !== undefined)
      warn(`a change of the secret was ended: backups from before need the old one, which is in ${kept}`)
  } catch (error) {
    warn(`the file of the secret cannot be replaced yet, which the next start tries again: ${String(error)}`)
  }
}
