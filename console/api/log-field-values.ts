import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { usageValueSchema, valuesQuery as asked } from '../../src/management/usage/usage-values.ts'
import type { CallScope } from './calls.ts'
import { queryString, request } from './client.ts'

/** A field of calls for which a filter suggests values. */
export type SuggestedField = z.output<typeof asked>['field']

/**
 * The values of a field in the calls of a period. Only values whose label contains `part` are returned; the
 * value with most calls comes first.
 */
export function fieldValuesQuery(
  userId: number,
  scope: CallScope,
  {
    field,
    span: { from, to },
    part,
  }: {
    readonly field: SuggestedField
    readonly span: { readonly from: number | undefined; readonly to: number | undefined }
    readonly part: string
  },
) {
  const end = to === undefined ? undefined : to - 1
  const query = queryString({ field, q: part, start_timestamp: from, end_timestamp: end })
  return queryOptions({
    queryKey: [userId, 'log-values', scope, query],
    queryFn: () =>
      request<readonly z.output<typeof usageValueSchema>[]>(
        'GET',
        `/api/log/${scope === 'all' ? '' : 'self/'}values${query}`,
      ),
  })
}
