import { describe, expect, test } from 'vitest'
import { NodeMessages } from './node-messages.ts'
import { sealLookupKey, type SecretState, settleSecrets } from './secret-state.ts'
import { deriveSecrets, hashSession, keyHashes, namespaceOf, seal, type Secrets, unseal } from './secrets.ts'

const OLD_SECRET = 'the-old-secret-0123456789'
const NEW_SECRET = 'the-new-secret-0123456789'
const OLD = deriveSecrets(OLD_SECRET)
const NEW = deriveSecrets(NEW_SECRET)
const PLACE = { table: 'tokens', row: 1 }

/** The states of a database from before a change to its end, and which secrets a process is given. */
const BEFORE: SecretState = { keyCheck: OLD.check, nextCheck: null, lookupCipher: null }
const lookupCipher = sealLookupKey(OLD, NEW)
const CHANGING: SecretState = { keyCheck: OLD.check, nextCheck: NEW.check, lookupCipher }
const AFTER: SecretState = { keyCheck: NEW.check, nextCheck: null, lookupCipher }

function settled(state: SecretState, ...secrets: [string, string?]): Secrets {
  const made = deriveSecrets(...secrets)
  settleSecrets(made, state)
  return made
}

const both = (state: SecretState): Secrets => settled(state, OLD_SECRET, NEW_SECRET)

describe('a process that knows both secrets', () => {
  test.each([
    ['before the change', BEFORE, OLD],
    ['during the change', CHANGING, NEW],
    ['after the change', AFTER, NEW],
  ])('%s encrypts with the right one', (_, state, expected) => {
    expect(seal(both(state), 'x', PLACE).startsWith(`v1.${expected.keyId}.`)).toBe(true)
  })

  test('before and during the change it reads values, keys and messages of both, and after it those of the new one alone', () => {
    const reads = (secrets: Secrets): boolean[] =>
      [OLD, NEW].map((of) => {
        try {
          return unseal(secrets, seal(of, 'x', PLACE), PLACE) === 'x'
        } catch {
          return false
        }
      })
    const finds = (secrets: Secrets): boolean[] =>
      [OLD, NEW].map((of) => keyHashes(secrets, 'k').includes(keyHashes(of, 'k')[0] ?? ''))
    const hears = (secrets: Secrets): boolean[] =>
      [OLD, NEW].map((of) =>
        ['cache', 'account 7'].every(
          (text) => new NodeMessages(secrets).open(Buffer.from(new NodeMessages(of).seal(text))) === text,
        ),
      )
    for (const able of [reads, finds, hears]) {
      expect([able(both(BEFORE)), able(both(CHANGING))]).toEqual([
        [true, true],
        [true, true],
      ])
      expect(able(both(AFTER))).toEqual([false, true])
    }
  })

  test('a running process follows all steps in place', () => {
    const secrets = deriveSecrets(OLD_SECRET, NEW_SECRET)
    const steps = [BEFORE, CHANGING, CHANGING, AFTER, AFTER].map((state) => {
      settleSecrets(secrets, state)
      return [secrets.check, secrets.other?.check]
    })
    expect(steps).toEqual([
      [OLD.check, NEW.check],
      [NEW.check, OLD.check],
      [NEW.check, OLD.check],
      [NEW.check, undefined],
      [NEW.check, undefined],
    ])
  })

  test('the HMACs of what is not known in plain text stay the same from before the change to after it', () => {
    const session = hashSession(OLD, 'cookie')
    const namespace = namespaceOf(OLD, 'database')
    for (const secrets of [both(BEFORE), both(CHANGING), both(AFTER), settled(AFTER, NEW_SECRET)])
      expect([hashSession(secrets, 'cookie'), namespaceOf(secrets, 'database')]).toEqual([session, namespace])
  })
})

test.each([
  ['the new one before the change', BEFORE, NEW_SECRET, 'another secret'],
  ['the old one during the change', CHANGING, OLD_SECRET, 'GATEWAY_SECRET_NEW'],
  ['the new one during the change', CHANGING, NEW_SECRET, 'GATEWAY_SECRET_NEW'],
  ['a third one during the change', CHANGING, 'a third secret of enough letters', 'another secret'],
  ['the old one after the change', AFTER, OLD_SECRET, 'another secret'],
  ['the old one with a line break', BEFORE, `${OLD_SECRET}\n`, 'only by white space at its end'],
  [
    'the new one with a space, during the change',
    CHANGING,
    `${NEW_SECRET} `,
    'only by white space at its end',
  ],
])('with one secret, %s, a process is refused', (_, state, secret, expected) => {
  expect(() => settled(state, secret)).toThrow(expected)
})
