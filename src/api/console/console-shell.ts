import { consoleShell, consoleShellSchema } from '../../management/console/console-shell.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Console`. */
export const consoleShellEndpoint = defineEndpoint({
  method: 'GET',
  path: '/api/console',
  area: 'management',
  access: 'account',
  summary: 'The account, the gateway and what is set up, as every page of the console needs them',
  responseBody: consoleShellSchema,
  handle: ({ user, parts }) => consoleShell(parts, user),
})
