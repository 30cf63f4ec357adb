import type { KeyLocations } from '../../accounts/authentication/key-from-request.ts'
import type { Endpoint } from '../endpoint.ts'

/** The ways to authenticate; `docs/api.md: Authentication`. */
export const SECURITY_SCHEMES = {
  accessToken: {
    type: 'apiKey',
    in: 'header',
    name: 'Authorization',
    description: "An account's access token, alone or after Bearer",
  },
  gatewayUser: { type: 'apiKey', in: 'header', name: 'Gateway-User', description: "The account's user id" },
  gatewayKey: {
    type: 'apiKey',
    in: 'header',
    name: 'Gateway-Key',
    description: "The id of a key of the account's own",
  },
  session: { type: 'apiKey', in: 'cookie', name: 'session', description: 'Of the console' },
  bearerKey: { type: 'http', scheme: 'bearer', description: 'An API key: sk-…' },
  xApiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key: sk-…' },
  alternateKey: { type: 'apiKey', in: 'header', name: 'x-alt-api-key', description: 'An API key: sk-…' },
  googleKey: { type: 'apiKey', in: 'header', name: 'x-goog-api-key', description: 'An API key: sk-…' },
  keyInQuery: { type: 'apiKey', in: 'query', name: 'key', description: 'An API key: sk-…' },
  metricsToken: { type: 'http', scheme: 'bearer', description: 'options.metrics_token' },
} as const

type Requirement = { readonly [Scheme in keyof typeof SECURITY_SCHEMES]?: readonly [] }

const ACCOUNT: readonly Requirement[] = [{ accessToken: [], gatewayUser: [] }, { session: [] }]
const KEYED_ACCOUNT = ACCOUNT.map((requirement) => ({ ...requirement, gatewayKey: [] as const }))
const BEARER: Requirement = { bearerKey: [] }
const ALTERNATE: readonly Requirement[] = [{ alternateKey: [] }, { googleKey: [] }, { keyInQuery: [] }]

/** Requirements by the locations in which an API key is accepted. */
const KEYS: Readonly<Record<KeyLocations, readonly Requirement[]>> = {
  bearer: [BEARER],
  'x-api-key': [{ xApiKey: [] }, BEARER],
  'model-list': [{ xApiKey: [] }, { googleKey: [] }, BEARER],
  alternate: [...ALTERNATE, BEARER],
  any: [{ xApiKey: [] }, ...ALTERNATE, BEARER],
}

/** Requirements by kind of access; a kind that is not listed needs an API key. */
const ACCESS: Readonly<Record<string, readonly Requirement[]>> = {
  anyone: [],
  visitor: [],
  account: ACCOUNT,
  admin: ACCOUNT,
  root: ACCOUNT,
  'keyed-account': KEYED_ACCOUNT,
  // No credentials are needed on the gateway's own machine.
  operator: [{}, { metricsToken: [] }],
}

/** The alternative credentials that an endpoint accepts. */
export function securityOf(endpoint: Endpoint): readonly Requirement[] {
  const known = ACCESS[endpoint.access]
  if (known) return known
  const keyIn = 'keyIn' in endpoint ? endpoint.keyIn : undefined
  return KEYS[keyIn ?? 'bearer']
}
