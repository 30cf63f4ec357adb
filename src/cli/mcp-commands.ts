import type { Command } from 'commander'
import type { McpToolObject } from '../management/mcp/mcp-tools.ts'
import type { CommandContext } from './command-context.ts'
import { CONFIG_OPTION, JSON_OPTION } from './options.ts'
import { plainJson, plainText } from './plain-text.ts'
import { type Column, details, table } from './table.ts'
import { type AccountOptions, printResult } from './with-accounts.ts'

const LIST_HELP = `
STATE is what the running gateway has seen by its last request: ok, unavailable or unauthorized. Without one it is unknown.
Example:
  sluice mcp list`

const TOOLS_HELP = `
Asks the servers for their tools, which needs a running gateway. A tool that is new or changed is withheld from clients.
Examples:
  sluice mcp tools github
  sluice mcp show github search          # its definition, and the one that is approved
  sluice mcp approve github search DIGEST`

interface ListedServer {
  readonly name: string
  readonly state: string | null
  readonly era: string
  readonly url: string
  readonly price: { readonly call: string }
  readonly approve: string
  readonly managed: boolean
}

/** Adds the commands `sluice mcp …`. */
export function addMcpCommands(program: Command, shell: CommandContext): void {
  const mcp = program
    .command('mcp')
    .description('list MCP servers and their tools, and approve changed tools')
  const adding = (name: string, description: string, help: string): Command =>
    mcp
      .command(name)
      .description(description)
      .addOption(JSON_OPTION)
      .addOption(CONFIG_OPTION)
      .addHelpText('after', help)
  adding('list', 'all servers, with state, revision, price and where they are managed', LIST_HELP).action(
    (options: AccountOptions) =>
      printResult(shell, options, 'listMcpServers', {}, (servers) => table(servers, SERVERS, shell.out)),
  )
  adding(
    'tools [server]',
    'the tools of all servers or of one, with the state of their definitions',
    TOOLS_HELP,
  ).action((server: string | undefined, options: AccountOptions) =>
    printResult(shell, options, 'listToolsOfServers', server === undefined ? {} : { server }, (tools) =>
      table(tools, TOOLS, shell.out),
    ),
  )
  adding('show <server> <tool>', 'the definition of a tool, and the one that is approved', TOOLS_HELP).action(
    (server: string, tool: string, options: AccountOptions) =>
      printResult(shell, options, 'showMcpTool', { server, tool }, (shown) => toolText(shown)),
  )
  adding(
    'approve <server> <tool> <digest>',
    'let clients see the present definition of a tool',
    TOOLS_HELP,
  ).action((server: string, tool: string, digest: string, options: AccountOptions) =>
    printResult(shell, options, 'approveMcpTool', { server, tool, digest }, () =>
      plainText(`The tool "${tool}" of the server "${server}" is approved.\n`),
    ),
  )
}

function toolText({
  server,
  tool,
  state,
  digest,
  definition,
  approved_digest,
  approved_definition,
}: McpToolObject): string {
  return details([
    ['server', server],
    ['tool', tool],
    ['state', state],
    ['digest', digest],
    ['definition', plainJson(definition)],
    ['approved', approved_digest ?? 'none'],
    ['approved definition', approved_definition ? plainJson(approved_definition) : 'none'],
  ])
}

const SERVERS: readonly Column<ListedServer>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  {
    title: 'STATE',
    cell: ({ state }) => state ?? 'unknown',
    warns: ({ state }) => state !== null && state !== 'ok',
  },
  { title: 'REVISION', cell: ({ era }) => era },
  { title: 'PRICE', cell: ({ price }) => price.call, right: true },
  { title: 'APPROVE', cell: ({ approve }) => approve },
  { title: 'MANAGED BY', cell: ({ managed }) => (managed ? 'gateway.yaml' : 'HTTP') },
  { title: 'URL', cell: ({ url }) => url },
]

const TOOLS: readonly Column<McpToolObject>[] = [
  { title: 'SERVER', cell: ({ server }) => server },
  { title: 'TOOL', cell: ({ tool }) => tool },
  { title: 'STATE', cell: ({ state }) => state, warns: ({ state }) => state !== 'approved' },
  { title: 'DIGEST', cell: ({ digest }) => digest },
]
