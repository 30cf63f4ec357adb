import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Groups`. */
export const listGroups = defineEndpoint({
  method: 'GET',
  path: '/api/group/',
  area: 'management',
  access: 'admin',
  summary: 'The names of all groups',
  responseBody: z.array(z.string()),
  handle: ({ parts }) => Promise.resolve([...parts.settings().groups.keys()].toSorted()),
})
