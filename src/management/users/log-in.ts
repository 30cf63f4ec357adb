import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { SESSION_SECONDS } from '../../auth/session-cookie.ts'
import { isBcrypt } from '../../domain/bcrypt-hash.ts'
import type { ManagedUser } from '../../domain/profile.ts'
import { USER_STATUS } from '../../domain/user.ts'
import { GatewayError } from '../../errors.ts'
import type { AdministrationParts } from '../parts.ts'
import { claimedPasswordField } from './user-fields.ts'

const USERNAME = 'expected the name of a user'

/** The credentials of a login. */
export const loginInput = z.object(
  {
    username: z.string({ error: USERNAME }).min(1).max(2000, { error: USERNAME }),
    password: claimedPasswordField,
  },
  { error: 'expected an object with username and password' },
)

/**
 * Starts a session of 30 days for a client in the address block `from`. An unknown name, a wrong password and
 * a user without one get the same 401 after the same time. Only a client with the right password learns that
 * the user is banned: 403. An imported hash of bcrypt is replaced by one of Argon2id.
 */
export async function logIn(
  {
    store,
    passwords,
    signIns,
    nowMs,
  }: Pick<AdministrationParts, 'store' | 'passwords' | 'signIns' | 'nowMs'>,
  { username, password }: z.output<typeof loginInput>,
  from: string,
): Promise<{ readonly user: ManagedUser; readonly session: string }> {
  const found = await store.read('credentials', { username })
  const passwordHash = found?.passwordHash ?? null
  const isRight = await passwords.verify(passwordHash, password, from)
  if (!found || passwordHash === null || !isRight) {
    if (await store.read('hasBcryptPasswords')) await passwords.spendOtherTime(passwordHash, password, from)
    throw invalidCredentials()
  }
  const { user } = found
  if (user.status !== USER_STATUS.enabled) {
    throw new GatewayError('user_disabled', 'this user has been banned')
  }
  const session = randomBytes(32).toString('base64url')
  const createdTime = Math.floor(nowMs() / 1000)
  const expiresTime = createdTime + SESSION_SECONDS
  const newHash = isBcrypt(passwordHash) ? await passwords.hash(password, from) : undefined
  const isBegun = await store.write('beginSession', {
    userId: user.id,
    cookieValue: session,
    passwordHash,
    newHash,
    createdTime,
    expiresTime,
  })
  if (!isBegun) throw invalidCredentials()
  signIns.remember(username, from)
  return { user, session }
}

function invalidCredentials(): GatewayError {
  return new GatewayError('unauthorized', 'username or password is incorrect, or the user has been banned')
}
