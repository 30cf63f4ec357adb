import { createSecretKey } from 'node:crypto'
import { seal, type SecretKeys, type Secrets, unsealBytes } from './secrets.ts'

/** What a database knows of its secret: `docs/security.md: Change the secret`. */
export interface SecretState {
  /** `Secrets.check` of the secret that the database has; while it is changed, of the old one. */
  readonly keyCheck: string
  /** `Secrets.check` of the new secret; null unless the secret is being changed. */
  readonly nextCheck: string | null
  /** `Secrets.lookupKey`, encrypted; null if it is derived from the secret. */
  readonly lookupCipher: string | null
}

/** Where the encrypted lookup key is stored. */
const LOOKUP_PLACE = { table: 'secret_state', row: 1 }

/**
 * Decides which of the given secrets encrypts, and which one is only read with: the one that the database has, or,
 * once the change of the secret has begun, the new one. Replaces the values in place. Throws a sentence for the
 * operator if a secret is missing.
 */
export function settleSecrets(secrets: Secrets, state: SecretState): void {
  const { keyCheck, nextCheck, lookupCipher } = state
  const given: readonly SecretKeys[] = [secrets, ...(secrets.other ? [secrets.other] : [])].map(onlyKeys)
  const old = given.find(({ check }) => check === keyCheck)
  const next = given.find(({ check }) => check === nextCheck)
  if (nextCheck !== null) {
    if (!old && !next) throw otherSecret(given, [keyCheck, nextCheck])
    if (!old || !next) throw halfOfChange(next ? 'old' : 'new')
    replace(secrets, next, old, lookupCipher)
    return
  }
  if (!old) throw otherSecret(given, [keyCheck])
  // The new secret is accepted before the change begins, so that nodes can be prepared one after another. If the
  // database has it, the change is over, and the old one is void.
  const isOver = keyCheck === secrets.newCheck
  replace(secrets, old, isOver ? undefined : given.find((one) => one !== old), lookupCipher)
}

/** Encrypts the lookup key with the new secret, so that it can be stored. */
export function sealLookupKey(secrets: Secrets, next: SecretKeys): string {
  return seal(next, secrets.lookupKey.export(), LOOKUP_PLACE)
}

function replace(
  secrets: Secrets,
  present: SecretKeys,
  other: SecretKeys | undefined,
  lookupCipher: string | null,
): void {
  const keys = { ...present, other }
  const lookupKey =
    lookupCipher === null
      ? present.ownLookupKey
      : createSecretKey(unsealBytes({ ...keys, lookupKey: present.ownLookupKey }, lookupCipher, LOOKUP_PLACE))
  Object.assign(secrets, { ...keys, lookupKey } satisfies Omit<Secrets, 'newCheck'>)
}

function onlyKeys(keys: SecretKeys): SecretKeys {
  const { keyId, encryptionKey, ownLookupKey, messageKey, check, spacedChecks } = keys
  return { keyId, encryptionKey, ownLookupKey, messageKey, check, spacedChecks }
}

function otherSecret(given: readonly SecretKeys[], checks: readonly string[]): Error {
  if (given.some(({ spacedChecks }) => spacedChecks.some((check) => checks.includes(check))))
    return new Error(
      'this database was made with a secret that differs from GATEWAY_SECRET only by white space at its end, such as a ' +
        'line break: remove it from GATEWAY_SECRET, or add it there',
    )
  return new Error(
    'this database was made with another secret, and its keys cannot be read with this one: set GATEWAY_SECRET to the ' +
      'secret that it was made with, or, if none was set, put the file "secret" of its data folder back',
  )
}

function halfOfChange(missing: 'old' | 'new'): Error {
  return new Error(
    'the secret of this database is being changed, and the ' +
      `${missing} one is not given: set GATEWAY_SECRET to the old and GATEWAY_SECRET_NEW to the new one until ` +
      '"sluice secret change --finish" has ended the change',
  )
}
