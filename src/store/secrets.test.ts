import { describe, expect, test } from 'vitest'
import { deriveSecrets, hashAccessToken, hashKey, seal, type Secrets, unseal } from './secrets.ts'

const SECRETS = deriveSecrets('sixteen letters!')
const OTHER = deriveSecrets('another secret of enough letters')
const PLACE = { table: 'tokens', row: 7 }

describe('the secret', () => {
  test('the gateway secret needs at least 16 characters, and the error says so', () => {
    expect(() => deriveSecrets('fifteen letters')).toThrow(/15 characters.*at least 16/)
    expect(() => deriveSecrets('')).toThrow(/at least 16/)
  })

  test('the same gateway secret always gives the same keys, with one key for encryption and another one for look-ups', () => {
    const keysOf = ({ encryptionKey, lookupKey }: Secrets) =>
      [encryptionKey, lookupKey].map((key) => key.export().toString('hex'))
    const keys = keysOf(SECRETS)
    expect(keysOf(deriveSecrets('sixteen letters!'))).toEqual(keys)
    expect(new Set(keys).size).toBe(2)
    expect(keys.every((key) => key.length === 64)).toBe(true)
  })
})

describe('lookup', () => {
  test('an API key is looked up by an HMAC that depends on the gateway secret', () => {
    expect(hashKey(SECRETS, 'abc')).toMatch(/^[0-9a-f]{64}$/)
    expect(hashKey(SECRETS, 'abc')).toBe(hashKey(SECRETS, 'abc'))
    expect(hashKey(SECRETS, 'abc')).not.toBe(hashKey(SECRETS, 'abd'))
    expect(hashKey(SECRETS, 'abc')).not.toBe(hashKey(OTHER, 'abc'))
  })

  test('an access token and an API key of the same letters have different hashes', () => {
    expect(hashAccessToken(SECRETS, 'abc')).not.toBe(hashKey(SECRETS, 'abc'))
  })
})

describe('encryption', () => {
  test('an encrypted value can be decrypted, and has another ciphertext each time it is encrypted', () => {
    const sealed = seal(SECRETS, 'kéy', PLACE)
    expect(unseal(SECRETS, sealed, PLACE)).toBe('kéy')
    expect(sealed).not.toBe(seal(SECRETS, 'kéy', PLACE))
    expect(sealed.startsWith(`v1.${SECRETS.keyId}.`)).toBe(true)
  })

  test('an encrypted value that was moved to another row or table cannot be decrypted', () => {
    const sealed = seal(SECRETS, 'key', PLACE)
    expect(() => unseal(SECRETS, sealed, { table: 'tokens', row: 8 })).toThrow()
    expect(() => unseal(SECRETS, sealed, { table: 'users', row: 7 })).toThrow()
  })

  test('an encrypted value that was changed anywhere cannot be decrypted', () => {
    const sealed = seal(SECRETS, 'key', PLACE)
    const [version, keyId, text] = sealed.split('.') as [string, string, string]
    const bytes = Buffer.from(text, 'base64url')
    for (let index = 0; index < bytes.length; index += 1) {
      const changed = Buffer.from(bytes)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(() => unseal(SECRETS, `${version}.${keyId}.${changed.toString('base64url')}`, PLACE)).toThrow()
    }
    expect(() => unseal(SECRETS, `${version}.${keyId}.AAAA`, PLACE)).toThrow(/cut short/)
    expect(() => unseal(SECRETS, 'key', PLACE)).toThrow(/form/)
  })

  test('a value encrypted with another gateway secret is refused with the ids of both secrets', () => {
    expect(() => unseal(OTHER, seal(SECRETS, 'key', PLACE), PLACE)).toThrow(
      new RegExp(`needs the secret ${SECRETS.keyId}, not ${OTHER.keyId}`),
    )
  })
})
