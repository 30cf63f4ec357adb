import { accountFigures } from '../../management/users/account-figures.ts'
import { billingUsageObject, billingUsageSchema } from '../../management/usage/billing-objects.ts'
import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'

/** `docs/api.md: Self-check and billing`; with and without the version prefix. */
export const billingUsage: readonly JsonEndpoint[] = ['/v1', ''].map((prefix) =>
  defineEndpoint({
    method: 'GET',
    path: `${prefix}/dashboard/billing/usage`,
    area: 'billing-usage',
    access: 'reading-key',
    summary: 'Used quota of the API key, or of its user',
    responseBody: billingUsageSchema,
    async handle({ token, parts }) {
      return billingUsageObject(await accountFigures(parts, token.id), parts.settings().options)
    },
  }),
)
