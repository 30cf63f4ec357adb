import { describe, expect, test } from 'vitest'
import { isAffordableBcrypt } from './bcrypt-hash.ts'

const REST = 'pgj3SNce2kzbgilC7id6Y.bnhsHzJ.6A6oBK.B.Dx.OzzvFK7vsXe'

describe('a bcrypt hash', () => {
  test.each(['$2a$04$', '$2b$10$', '$2y$12$', '$2x$14$'])('a bcrypt hash %s is accepted', (head) => {
    expect(isAffordableBcrypt(head + REST)).toBe(true)
  })

  test.each([
    ['that costs a minute', `$2a$15$${REST}`],
    ['of another version', `$2c$10$${REST}`],
    ['that is cut', `$2a$10$${REST.slice(1)}`],
    ['with something after it', `$2a$10$${REST}\n`],
    ['of Argon2', '$argon2id$v=19$m=19456,t=2,p=1$zuC28nmOxXhr8Hbx54GqSw$txp'],
    ['that is invalid', ''],
  ])('a bcrypt hash %s is refused', (_, text) => {
    expect(isAffordableBcrypt(text)).toBe(false)
  })
})
