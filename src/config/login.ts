import type { LoginSettings, OidcProvider } from '../domain/settings.ts'
import { pointsToMetadataAddress } from '../domain/metadata-address.ts'
import {
  credentialSchema,
  dictionarySchema,
  type Field,
  flagSchema,
  listSchema,
  nameSchema,
  InvalidValue,
  sectionSchema,
  textSchema,
} from './fields.ts'
import { groupNameSchema } from './groups.ts'

const providerName = textSchema('a name of up to 40 lower-case letters, digits and hyphens', (given) =>
  /^[a-z0-9][a-z0-9-]{0,39}$/.test(given) ? given : undefined,
)

// Scopes are separated by spaces in requests (RFC 6749, 3.3).
const scope = textSchema('a scope without spaces', (given) =>
  /^[!#-[\]-~]+$/.test(given) ? given : undefined,
)

const claim = nameSchema('the name of a claim')
const claimValue = nameSchema('a value of the group claim')

function provider(groups: ReadonlySet<string>): Field<OidcProvider> {
  return sectionSchema({
    name: providerName,
    issuer: textSchema('an https:// or http:// URL, the issuer as its metadata states it', readIssuer),
    client_id: nameSchema('the id of the client that is registered there'),
    client_secret: credentialSchema('a secret: printable characters without spaces'),
    scopes: listSchema(scope, 'a list of scopes').default(['openid', 'profile', 'email']),
    username_claim: claim.default('preferred_username'),
    group_claim: claim.optional(),
    groups: dictionarySchema(groupNameSchema(groups), 'a mapping from values of the group claim to groups'),
    admins: listSchema(claimValue, 'a list of values of the group claim'),
    create: flagSchema.default(true),
  })
    .superRefine((given, ctx) => {
      for (const key of ['groups', 'admins'] as const) {
        const size = key === 'groups' ? given.groups.size : given.admins.length
        if (size === 0 || given.group_claim !== undefined) continue
        ctx.addIssue({ code: 'custom', path: [key], message: 'expected group_claim beside it' })
      }
    })
    .transform(
      (given): OidcProvider => ({
        name: given.name,
        issuer: given.issuer,
        clientId: given.client_id,
        clientSecret: given.client_secret,
        scopes: given.scopes.includes('openid') ? given.scopes : ['openid', ...given.scopes],
        usernameClaim: given.username_claim,
        groupClaim: given.group_claim,
        groups: given.groups,
        admins: given.admins,
        create: given.create,
      }),
    )
}

/** Schema of the section `login`: `docs/configuration.md: Sign-in`. */
export function loginSchema(groups: ReadonlySet<string>): Field<LoginSettings> {
  return sectionSchema({
    password: flagSchema.default(true),
    oidc: listSchema(provider(groups), 'a list of identity providers'),
  })
}

/** An issuer identifier, unchanged, because it is compared as text (OpenID Connect Core, 2). */
function readIssuer(given: string): string | InvalidValue | undefined {
  const url = URL.parse(given)
  if (!url || !/^https?:\/\//i.test(given) || /[\s\\]/.test(given)) return undefined
  if (url.username || url.password) return new InvalidValue('a URL without a user or password')
  if (given.includes('?') || given.includes('#')) return new InvalidValue('a URL without ? or #')
  if (given.includes('/.well-known/'))
    return new InvalidValue('the issuer alone: /.well-known/openid-configuration is added')
  return pointsToMetadataAddress(given)
    ? new InvalidValue("another address than that of a cloud's metadata service")
    : given
}
