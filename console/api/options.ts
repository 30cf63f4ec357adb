import { queryOptions } from '@tanstack/react-query'
import type { z } from 'zod'
import type { declaredSchema, optionSchema } from '../../src/management/settings/list-options.ts'
import { request } from './client.ts'

/** An option of the gateway; an option that is *managed* is set in gateway.yaml. */
export type GatewayOption = z.output<typeof optionSchema>

/** The options in effect. */
export function optionsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'options'],
    queryFn: () => request<readonly GatewayOption[]>('GET', '/api/option/'),
  })
}

/** Sets an option; if `version` is given, only if the option still has that version. */
export async function setOption(key: string, value: string, version: string | undefined): Promise<void> {
  await request('PUT', '/api/option/', { key, value, version })
}

/** The settings in the configuration file, with their line numbers. */
export type DeclaredSettings = z.output<typeof declaredSchema>

/** The settings in the configuration file. */
export function declaredSettingsQuery(userId: number) {
  return queryOptions({
    queryKey: [userId, 'declared'],
    queryFn: () => request<DeclaredSettings>('GET', '/api/option/declared'),
  })
}
