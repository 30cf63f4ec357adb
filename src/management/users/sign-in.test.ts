import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { OidcProvider } from '../../domain/settings.ts'
import { Role } from '../../domain/role.ts'
import { rightsToChange, rightsFromClaims } from './sign-in.ts'

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
