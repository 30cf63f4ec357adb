import { createHash } from 'node:crypto'
import type { HourlyReports, WithheldTool } from '../../alerts/hourly-reports.ts'
import { isJsonText } from '@sluice/wire/json/exact-json'
import type { McpServer, McpSettings } from '../../domain/mcp.ts'
import type { StoredConfiguration } from '../../domain/settings.ts'
import { approvalOf, type McpToolSource, type PresentTool } from '../../management/mcp/mcp-tools.ts'
import type { Store } from '../../store/store.ts'
import { listedName } from './listed-entries.ts'
import type { Fields } from './protocol.ts'
import type { KnownServer, McpServers } from './servers.ts'
import { ServerFailure } from './server-transport.ts'

/** The members of a tool that make up its definition. */
const DEFINITION = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const

/** Maximum number of tools of one server whose first definition is approved. */
const MAX_FIRST = 5_000

export type ToolState = 'approved' | 'changed' | 'new'

/** A tool as a server defines it at present. */
export interface DefinedTool {
  readonly listed: string
  readonly digest: string
  readonly definition: Fields
  readonly state: ToolState
}

/** The definition of a tool, and its digest, for which the order of members does not count. */
export function definitionOf(tool: Fields): { readonly digest: string; readonly definition: Fields } {
  let known = definitions.get(tool)
  if (!known) {
    const members = DEFINITION.flatMap((name) =>
      tool[name] === undefined ? [] : [[name, tool[name]] as const],
    )
    const definition = Object.fromEntries(members)
    const digest = createHash('sha256').update(canonical(definition)).digest('hex')
    definitions.set(tool, (known = { digest, definition }))
  }
  return known
}

// Lists are kept, so that most tools are digested once.
const definitions = new WeakMap<Fields, { readonly digest: string; readonly definition: Fields }>()

function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null || isJsonText(value)) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  const members = Object.entries(value as Fields).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`
}

/** A tool with its state. A tool of a server with `approve: first` that has no approved definition is new, too. */
export function definedTool({ approved }: McpSettings, server: McpServer, tool: Fields): DefinedTool {
  const listed = listedName(server.name, String(tool['name']))
  const { digest, definition } = definitionOf(tool)
  const known = approved.get(listed)
  const state =
    server.approve === 'never' || known?.digest === digest ? 'approved' : known ? 'changed' : 'new'
  return { listed, digest, definition, state }
}

interface ApprovalServices {
  readonly store: Pick<Store, 'write'>
  readonly liveConfig: {
    change<T>(next: (stored: StoredConfiguration) => StoredConfiguration, write: () => Promise<T>): Promise<T>
    reread(): Promise<void>
  }
  /** The current settings. */
  readonly mcp: () => McpSettings
  /** What alerts report. */
  readonly withheldTools: Pick<HourlyReports<WithheldTool>, 'note'>
}

/** Approves the first definitions of tools, and knows which tools clients may see. `docs/mcp.md: Approval`. */
export class ToolApprovals {
  readonly #services: ApprovalServices

  constructor(services: ApprovalServices) {
    this.#services = services
  }

  /** The tools of a list that clients may see. */
  async visible(server: McpServer, tools: readonly Fields[]): Promise<readonly Fields[]> {
    if (server.approve === 'never') return tools
    if (server.approve === 'first') await this.#approveFirst(server, tools)
    const mcp = this.#services.mcp()
    return tools.filter((tool) => {
      const { state, digest, listed } = definedTool(mcp, server, tool)
      if (state === 'approved') return true
      const approved_digest = mcp.approved.get(listed)?.digest ?? null
      this.#services.withheldTools.note({
        server: server.name,
        tool: String(tool['name']),
        digest,
        approved_digest,
      })
      return false
    })
  }

  async #approveFirst(server: McpServer, tools: readonly Fields[]): Promise<void> {
    const mcp = this.#services.mcp()
    const unknown = tools.map((tool) => definedTool(mcp, server, tool)).filter(({ state }) => state === 'new')
    if (unknown.length === 0) return
    const prefix = listedName(server.name, '')
    const known = [...mcp.approved.keys()].filter((name) => name.startsWith(prefix)).length
    const first = unknown.slice(0, Math.max(0, MAX_FIRST - known))
    if (first.length === 0) return
    const entries = first.map(({ listed, digest, definition }) => ({
      section: 'mcp_tools' as const,
      name: listed,
      value: approvalOf({ digest, definition }),
    }))
    const { store, liveConfig } = this.#services
    await liveConfig.change(
      (stored) => {
        const isKnown = new Set(
          stored.entries.flatMap(({ section, name }) => (section === 'mcp_tools' ? [name] : [])),
        )
        return {
          ...stored,
          entries: [...stored.entries, ...entries.filter(({ name }) => !isKnown.has(name))],
        }
      },
      () => store.write('approveFirstTools', { tools: entries }),
    )
    // Another node may have been first.
    await liveConfig.reread()
  }
}

/** Reads the tools of servers for administrators, in a separate session. */
export function mcpToolSource(
  servers: McpServers,
  approvals: ToolApprovals,
  mcp: () => McpSettings,
): McpToolSource {
  const toolsOf = async ({ server, lists }: KnownServer): Promise<readonly PresentTool[]> => {
    try {
      const { entries, invalid } = await lists.get('tools', { tokenId: 0 })
      await approvals.visible(server, entries)
      const now = mcp()
      const named = (tool: Fields, state: PresentTool['state']): PresentTool => ({
        server: server.name,
        tool: String(tool['name']),
        state,
        ...definitionOf(tool),
      })
      return [
        ...entries.map((tool) => named(tool, definedTool(now, server, tool).state)),
        ...invalid.map((tool) => named(tool, 'invalid')),
      ]
    } catch (error) {
      if (error instanceof ServerFailure) return []
      throw error
    }
  }
  return {
    async list(only) {
      const known = [...servers.of(mcp()).values()].filter(
        ({ server }) => only === undefined || server.name === only,
      )
      return (await Promise.all(known.map(toolsOf))).flat()
    },
    states: () =>
      new Map(
        [...servers.of(mcp())].map(
          ([
            name,
            {
              connection: { state, version },
            },
          ]) => [name, { state, version }],
        ),
      ),
  }
}
