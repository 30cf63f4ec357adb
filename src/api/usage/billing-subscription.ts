import { accountFigures } from '../../management/users/account-figures.ts'
import { subscriptionObject, subscriptionSchema } from '../../management/usage/billing-objects.ts'
import { defineEndpoint, type JsonEndpoint } from '../endpoint.ts'

/** `docs/api.md: Self-check and billing`; with and without the version prefix. */
export const billingSubscription: readonly JsonEndpoint[] = ['/v1', ''].map((prefix) =>
  defineEndpoint({
    method: 'GET',
    path: `${prefix}/dashboard/billing/subscription`,
    area: 'billing-subscription',
    access: 'reading-key',
    summary: 'Granted quota of the API key, or of its user',
    responseBody: subscriptionSchema,
    async handle({ token, parts }) {
      return subscriptionObject(await accountFigures(parts, token.id), parts.settings().options)
    },
  }),
)
