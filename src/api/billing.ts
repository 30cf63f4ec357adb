import {
  readTokenBalances,
  billingUsageObject,
  billingUsageSchema,
  subscriptionObject,
  subscriptionSchema,
  tokenUsageObject,
  tokenUsageSchema,
} from '../management/usage/billing-objects.ts'
import { readHeldSums } from '../management/usage-limits.ts'
import { allowedModelNames } from '../call/key-permissions.ts'
import { defineEndpoint, type JsonEndpoint } from './endpoint.ts'

/** Endpoints by which clients read their used and remaining quota: `docs/api.md: Self-check and billing`. */
export const BILLING_ENDPOINTS: readonly JsonEndpoint[] = [
  defineEndpoint({
    method: 'GET',
    path: '/api/usage/token/',
    area: 'usage',
    access: 'reading-key',
    summary: 'Used and remaining quota of the API key',
    responseBody: tokenUsageSchema,
    async handle({ token: { id }, services }) {
      const account = `t:${id}` as const
      const held = await readHeldSums(services.store, [account])
      const { token } = await readTokenBalances(services, id)
      return tokenUsageObject(token, allowedModelNames(token) ?? [], held.get(account) ?? 0)
    },
  }),
  // Clients use these paths both with and without `/v1`.
  ...['/v1', ''].flatMap((prefix) => [
    defineEndpoint({
      method: 'GET',
      path: `${prefix}/dashboard/billing/subscription`,
      area: 'billing-subscription',
      access: 'reading-key',
      summary: 'Granted quota of the API key, or of its user',
      responseBody: subscriptionSchema,
      async handle({ token, services }) {
        return subscriptionObject(await readTokenBalances(services, token.id), services.settings().options)
      },
    }),
    defineEndpoint({
      method: 'GET',
      path: `${prefix}/dashboard/billing/usage`,
      area: 'billing-usage',
      access: 'reading-key',
      summary: 'Used quota of the API key, or of its user',
      responseBody: billingUsageSchema,
      async handle({ token, services }) {
        return billingUsageObject(await readTokenBalances(services, token.id), services.settings().options)
      },
    }),
  ]),
]
