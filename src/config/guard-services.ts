import { awsUrl } from '@sluice/wire/aws-domains'
import { withoutTrailing } from '../domain/without-trailing.ts'
import { pointsToMetadataAddress } from '../domain/metadata-address.ts'
import type { ServiceMatch } from '../domain/guard.ts'
import { parseBedrockKey } from '../domain/provider-keys.ts'
import {
  credentialSchema,
  dictionarySchema,
  type Field,
  listSchema,
  nameSchema,
  scalarSchema,
  secretSchema,
  sectionSchema,
  shareSchema,
  textSchema,
} from './fields.ts'
import { headersSchema } from './header-fields.ts'

/** Address of the service Lakera Guard, unless the file states another. */
const LAKERA_URL = 'https://api.lakera.ai'
/** Minimum score of Presidio's matches if none is given. */
const DEFAULT_SCORE = 0.5

// Addresses of services may contain passwords, so messages do not repeat them.
const address: Field<string> = secretSchema(
  "an http:// or https:// URL without a user, a query and a fragment, and not of a cloud's metadata service",
  (given) => {
    const parsed = /^https?:\/\//i.test(given) && !/[\s\\?#]/.test(given) ? URL.parse(given) : null
    if (!parsed || parsed.username !== '' || parsed.password !== '') return undefined
    return pointsToMetadataAddress(given) ? undefined : withoutTrailing(given, '/')
  },
)

const headers = headersSchema()

const score = shareSchema('a score from 0 to 1')

const segment = (what: string): Field<string> =>
  textSchema(what, (given) => (/^[\w:./-]{1,2048}$/.test(given) ? given : undefined))

const awsKey = secretSchema('ACCESS_KEY_ID:SECRET_ACCESS_KEY, or the same and :SESSION_TOKEN', (given) => {
  const key = parseBedrockKey(given)
  return key && 'aws' in key ? given : undefined
})

/**
 * Schemas for what an external service looks for, by the member of `match` that names the service;
 * `docs/guards.md: Services`.
 */
export const GUARD_SERVICE_SCHEMAS = {
  moderation: sectionSchema({
    moderation: sectionSchema({
      model: nameSchema('the name of a model'),
      thresholds: dictionarySchema(score, 'a mapping from categories to scores').transform((given) =>
        Object.fromEntries(given),
      ),
    }),
  }).transform(({ moderation }): ServiceMatch => ({ kind: 'moderation', ...moderation })),
  webhook: sectionSchema({ webhook: sectionSchema({ url: address, headers }) }).transform(
    ({ webhook }): ServiceMatch => ({ kind: 'webhook', ...webhook }),
  ),
  presidio: sectionSchema({
    presidio: sectionSchema({
      url: address,
      language: textSchema('a language code such as en', (given) =>
        /^[A-Za-z][A-Za-z0-9-]{1,15}$/.test(given) ? given : undefined,
      ).default('en'),
      score: score.default(DEFAULT_SCORE),
      entities: listSchema(
        textSchema('the name of an entity such as PERSON', (given) =>
          /^[A-Za-z0-9_]{1,64}$/.test(given) ? given : undefined,
        ),
        'a list of entities',
      ),
    }),
  }).transform(({ presidio }): ServiceMatch => ({ kind: 'presidio', ...presidio })),
  bedrock: sectionSchema({
    bedrock: sectionSchema({
      base_url: address.optional(),
      region: textSchema('a region such as us-east-1', (given) =>
        /^[a-z]{2,}(?:-[a-z]+)+-\d+$/.test(given) ? given : undefined,
      ),
      guardrail: segment('the id or the ARN of a guardrail'),
      version: scalarSchema('a version number or DRAFT', ({ value }) =>
        /^(?:[1-9]\d{0,7}|DRAFT)$/.test(String(value)) ? String(value) : undefined,
      ),
      keys: listSchema(awsKey, 'a list of at least one key', 1),
    }),
  }).transform(
    ({ bedrock: { base_url: baseUrl, ...bedrock } }): ServiceMatch => ({
      kind: 'bedrock',
      base_url: baseUrl ?? awsUrl('bedrock-runtime', bedrock.region),
      ...bedrock,
    }),
  ),
  lakera: sectionSchema({
    lakera: sectionSchema({
      base_url: address.default(LAKERA_URL),
      key: credentialSchema('a key: printable characters without spaces'),
      project_id: nameSchema('the id of a project').optional(),
    }),
  }).transform(({ lakera }): ServiceMatch => ({ kind: 'lakera', project_id: undefined, ...lakera })),
} as const satisfies Record<ServiceMatch['kind'], Field<ServiceMatch>>
