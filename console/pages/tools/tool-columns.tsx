import { ActionIcon } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import type { McpServer, McpTool, McpToolset } from '../../api/tools.ts'
import type { Column } from '../../components/data-table.tsx'
import { ManagedMark } from '../../components/managed-mark.tsx'
import { useFormatters } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** A server or a toolset that is about to be deleted. */
export interface ToDelete {
  readonly list: 'servers' | 'toolsets'
  readonly name: string
}

type OnDelete = (entry: ToDelete) => void

const TONES = { ok: 'ok', unavailable: 'bad', unauthorized: 'bad' } as const
const TOOL_TONES = { approved: 'ok', changed: 'warn', new: 'warn', invalid: 'off' } as const

export function useServerColumns(
  tools: readonly McpTool[],
  onDelete: OnDelete,
): readonly Column<McpServer>[] {
  const { tools: t } = useTexts()
  const { price: priceText } = useFormatters()
  const deletion = useDeletion<McpServer>('servers', onDelete)
  return [
    {
      key: 'name',
      label: t.server,
      phone: 'title',
      sortBy: ({ name }) => name,
      cell: ({ name, managed, managed_by: by }) => (
        <>
          <Link to="/tools" search={{ server: name }} data-row-link>
            <TruncatedText text={name} isName />
          </Link>
          {managed && <ManagedMark by={by} />}
        </>
      ),
    },
    {
      key: 'state',
      label: t.state,
      phone: 'value',
      sortBy: ({ state }) => state ?? '',
      cell: ({ state }) => (state === null ? '–' : <StateMark tone={TONES[state]} word={t.states[state]} />),
    },
    { key: 'era', label: t.era, isOptional: true, cell: ({ era }) => (era === 'auto' ? t.automatic : era) },
    {
      key: 'tools',
      label: t.tools,
      isNumber: true,
      sortBy: ({ name }) => tools.filter(({ server }) => server === name).length,
      cell: ({ name }) => {
        const own = tools.filter(({ server }) => server === name)
        const withheld = own.filter(({ state }) => state === 'changed' || state === 'new').length
        return withheld === 0 ? own.length : t.withheldOf(withheld, own.length)
      },
    },
    { key: 'price', label: t.price, isNumber: true, cell: ({ price }) => priceText(Number(price.call)) },
    { key: 'approve', label: t.approve, isOptional: true, cell: ({ approve }) => t.approvals[approve] },
    deletion,
  ]
}

export function useToolColumns(servers: readonly McpServer[]): readonly Column<McpTool>[] {
  const { tools: t, common } = useTexts()
  const { price: priceText } = useFormatters()
  const prices = new Map(servers.map(({ name, price }) => [name, price]))
  const priceOf = ({ server, tool }: McpTool): string => {
    const price = prices.get(server)
    return price?.tools[tool] ?? price?.call ?? '0'
  }
  return [
    {
      key: 'name',
      label: t.tool,
      phone: 'title',
      sortBy: ({ server, tool }) => `${server}_${tool}`,
      cell: ({ server, tool }) => <TruncatedText text={`${server}_${tool}`} isName />,
    },
    {
      key: 'state',
      label: t.definition,
      phone: 'value',
      sortBy: ({ state }) => state,
      cell: ({ state }) => <StateMark tone={TOOL_TONES[state]} word={t.definitions[state]} />,
    },
    {
      key: 'description',
      label: t.description,
      isOptional: true,
      cell: ({ definition: { description } }) => (
        <TruncatedText text={typeof description === 'string' ? description : ''} />
      ),
    },
    {
      key: 'price',
      label: t.price,
      isNumber: true,
      sortBy: (one) => Number(priceOf(one)),
      cell: (one) => priceText(Number(priceOf(one))),
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: ({ server, tool, state }) => (
        <Link
          to="/tools"
          search={{ review: `${server}_${tool}` }}
          aria-label={`${state === 'changed' || state === 'new' ? t.review : t.show} ${server}_${tool}`}
        >
          {state === 'changed' || state === 'new' ? t.review : t.show}
        </Link>
      ),
    },
  ]
}

export function useToolsetColumns(onDelete: OnDelete): readonly Column<McpToolset>[] {
  const { tools: t } = useTexts()
  const deletion = useDeletion<McpToolset>('toolsets', onDelete)
  return [
    {
      key: 'name',
      label: t.toolset,
      phone: 'title',
      sortBy: ({ name }) => name,
      cell: ({ name, managed, managed_by: by }) => (
        <>
          <Link to="/tools" search={{ toolset: name }} data-row-link>
            <TruncatedText text={name} isName />
          </Link>
          {managed && <ManagedMark by={by} />}
        </>
      ),
    },
    {
      key: 'tools',
      label: t.patterns,
      cell: ({ tools }) => <TruncatedText text={tools.join(', ')} isList />,
    },
    {
      key: 'for',
      label: t.for,
      cell: ({ groups, users }) =>
        groups || users ? (
          <TruncatedText text={[...(groups ?? []), ...(users ?? [])].join(', ')} isList />
        ) : (
          t.everybody
        ),
    },
    deletion,
  ]
}

/** The column with the button that deletes a row, unless gateway.yaml declares it. */
function useDeletion<Row extends { readonly name: string; readonly managed: boolean }>(
  list: ToDelete['list'],
  onDelete: OnDelete,
): Column<Row> {
  const { common } = useTexts()
  return {
    key: 'actions',
    label: common.actions,
    isLabelHidden: true,
    phone: 'actions',
    cell: ({ name, managed }) =>
      !managed && (
        <ActionIcon
          aria-label={`${common.delete} ${name}`}
          title={common.delete}
          onClick={() => onDelete({ list, name })}
        >
          <IconTrash size={16} />
        </ActionIcon>
      ),
  }
}
