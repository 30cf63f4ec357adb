import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OidcProvider } from '../../domain/settings.ts'
import { Role } from '../../domain/role.ts'
import { Passwords } from '../../accounts/authentication/passwords.ts'
import { SignIns } from '../../accounts/authentication/sign-ins.ts'
import { logIn, rightsToChange, rightsFromClaims } from './sign-in.ts'

const provider = (of: Partial<OidcProvider>): OidcProvider => ({
  name: 'corp',
  issuer: 'https://id.example',
  clientId: 'c',
  clientSecret: 's',
  scopes: ['openid'],
  usernameClaim: 'preferred_username',
  groupClaim: 'groups',
  groups: new Map(),
  admins: [],
  create: true,
  ...of,
})

const mapped = provider({
  groups: new Map([
    ['b', 'second'],
    ['a', 'first'],
  ]),
  admins: ['boss'],
})

test.each([
  [['a', 'b'], { group: 'second', role: Role.user }],
  [['a'], { group: 'first', role: Role.user }],
  ['boss', { group: 'default', role: Role.admin }],
  [[], { group: 'default', role: Role.user }],
  [undefined, { group: 'default', role: Role.user }],
  [7, { group: 'default', role: Role.user }],
  [{ boss: true }, { group: 'default', role: Role.user }],
  [[['boss']], { group: 'default', role: Role.user }],
])('the claim %j gives the rights %j: the first mapping counts', (groups, rights) => {
  expect(rightsFromClaims(mapped, { groups })).toEqual(rights)
})

test("a sign-in changes a user's role or group only if an OIDC setting maps it from claims", () => {
  const groups = ['a', 'boss']
  const managedHere = { group: undefined, role: undefined }
  expect(rightsFromClaims(provider({ groupClaim: undefined }), { groups })).toEqual(managedHere)
  expect(rightsFromClaims(provider({}), { groups })).toEqual(managedHere)
  expect(rightsFromClaims(provider({ admins: ['boss'] }), { groups })).toEqual({
    group: undefined,
    role: Role.admin,
  })
})

test('no OIDC claim makes a user root or demotes a root user, and a second sign-in with the same claims changes nothing', () => {
  const role = fc.constantFrom(Role.user, Role.admin, Role.root)
  const groups = fc.jsonValue()
  fc.assert(
    fc.property(role, groups, (had, claimed) => {
      const rights = rightsFromClaims(mapped, { groups: claimed })
      const user = { group: 'default', role: had }
      const after = { ...user, ...rightsToChange(user, rights) }
      expect(after.role === Role.root).toBe(had === Role.root)
      expect(rightsToChange(after, rights)).toEqual({})
    }),
  )
})

test('a burst of sign-ins from one address delays one from another by a few sign-ins, in the database too', async () => {
  const asked: string[] = []
  // A database that serves requests in the order in which they arrive, one at a time.
  let last: Promise<unknown> = Promise.resolve()
  const inOrder = (from: string): Promise<undefined> => {
    asked.push(from)
    const served = last.then(
      () => new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined))),
    )
    last = served
    return served
  }
  const servicesOf = (from: string): Parameters<typeof logIn>[0] =>
    ({
      store: { read: () => inOrder(from), write: () => inOrder(from) },
      passwords,
      signIns,
      settings: () => ({ login: { password: true } }),
    }) as unknown as Parameters<typeof logIn>[0]
  const passwords = new Passwords()
  const signIns = new SignIns()
  const refused = (from: string, n: number): Promise<string> =>
    logIn(servicesOf(from), { username: `nobody-${n}`, password: 'wrong' }, from, {
      address: from,
      userAgent: undefined,
    }).then(
      () => 'accepted',
      (error: unknown) => (error as { code: string }).code,
    )
  const burst = Array.from({ length: 40 }, (_, n) => refused('burst', n))
  // The first of them have begun.
  await expect.poll(() => asked.length).toBeGreaterThan(0)
  expect(await refused('owner', 0)).toBe('unauthorized')
  // Each of the four that run beside it asks the database three times; before the owner, and while it waits.
  expect(asked.filter((from) => from === 'burst').length).toBeLessThanOrEqual(3 * 4 * 4)
  expect(await Promise.all(burst)).toEqual(burst.map(() => 'unauthorized'))
})
