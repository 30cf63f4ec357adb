import { CLIENT_PROTOCOLS } from '@sluice/wire/protocols'
import { Button, Group, Select, Switch, TextInput } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { managedModelsQuery } from '../../api/models.ts'
import { type RoutedChannel, type Simulation, simulationQuery } from '../../api/routing.ts'
import { groupsQuery } from '../../api/users.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { Toolbar } from '../../components/toolbar.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './routing-page.module.css'

const REFRESH_MS = 10_000
const PROMPT_TOKENS = '1000'

/** The channels of a model in the order in which they are tried, and what would happen to a call. */
export function RoutingPage() {
  const { routing: t, channels } = useTexts()
  const { profile } = useSignedInAccount()
  const [{ model = '', group = profile.group, protocol = 'chat', without = '' }, setSearch] = useSearchState()
  const [isSimulated, setIsSimulated] = useState(false)
  const [sizes, setSizes] = useState({ prompt: PROMPT_TOKENS, output: '' })
  const { data: models = [] } = useQuery(managedModelsQuery(profile.id))
  const { data: groups = [] } = useQuery(groupsQuery(profile.id))
  const left = without.split(',').filter(Boolean).map(Number)
  const query = useQuery({
    ...simulationQuery(
      profile.id,
      {
        model,
        group,
        protocol: CLIENT_PROTOCOLS.find((one) => one === protocol) ?? 'chat',
        without: left,
        prompt_tokens: Number(sizes.prompt) || 0,
        max_tokens: sizes.output === '' ? null : Number(sizes.output) || 0,
      },
      REFRESH_MS,
    ),
    placeholderData: keepPreviousData,
  })
  const leave = (id: number, isLeft: boolean): void => {
    const ids = isLeft ? [...left, id] : left.filter((one) => one !== id)
    setSearch({ without: ids.length === 0 ? undefined : ids.join(',') })
  }
  return (
    <>
      <PageHead title={t.title} />
      <Toolbar>
        <Select
          label={t.model}
          searchable
          data={models.map((one) => one.model)}
          value={model === '' ? null : model}
          onChange={(chosen) => setSearch({ model: chosen ?? undefined, without: undefined })}
        />
        <Select
          label={t.group}
          allowDeselect={false}
          data={[...new Set([...groups, group])]}
          value={group}
          onChange={(chosen) => setSearch({ group: chosen ?? undefined })}
        />
        <Select
          label={t.protocol}
          allowDeselect={false}
          data={CLIENT_PROTOCOLS.map((value) => ({ value, label: channels.protocols[value] }))}
          value={protocol}
          onChange={(chosen) => setSearch({ protocol: chosen ?? undefined })}
        />
      </Toolbar>
      {model === '' ? (
        <EmptyState text={t.empty} />
      ) : (
        <QueryResult query={query}>
          {(simulation) => (
            <>
              <Route simulation={simulation} left={new Set(left)} onLeave={leave} />
              <Group gap="sm" align="end" mt="md">
                <TextInput
                  type="number"
                  min={0}
                  label={t.promptTokens}
                  value={sizes.prompt}
                  onChange={({ currentTarget: { value } }) => setSizes({ ...sizes, prompt: value })}
                />
                <TextInput
                  type="number"
                  min={0}
                  label={t.maxTokens}
                  value={sizes.output}
                  onChange={({ currentTarget: { value } }) => setSizes({ ...sizes, output: value })}
                />
                <Button onClick={() => setIsSimulated(true)}>{t.simulate}</Button>
              </Group>
              {isSimulated && <Verdict simulation={simulation} />}
            </>
          )}
        </QueryResult>
      )}
    </>
  )
}

function Route({
  simulation: { route },
  left,
  onLeave,
}: {
  readonly simulation: Simulation
  readonly left: ReadonlySet<number>
  readonly onLeave: (id: number, isLeft: boolean) => void
}) {
  const { routing: t } = useTexts()
  const { count } = useFormatters()
  if (route.length === 0) return <EmptyState text={t.noChannel} />
  return (
    <ol aria-label={t.route} className={classes['route']}>
      {route.flatMap(({ model, fallback, priority, channels }, step) =>
        channels.map((one, at) => (
          <li key={`${model} ${one.id}`} data-first={at === 0 || undefined}>
            <span className={classes['step']}>
              {at === 0 && t.step(count(step + 1), fallback ? model : '', count(priority))}
            </span>
            <OneChannel channel={one} isLeft={left.has(one.id)} onLeave={(is) => onLeave(one.id, is)} />
          </li>
        )),
      )}
    </ol>
  )
}

const TONES = {
  untried: 'off',
  works: 'ok',
  degraded: 'warn',
  failing: 'warn',
  resting: 'bad',
  probing: 'warn',
  drained: 'off',
  disabled: 'off',
} as const

function OneChannel({
  channel: { id, name, condition, native, share, why_not: why },
  isLeft,
  onLeave,
}: {
  readonly channel: RoutedChannel
  readonly isLeft: boolean
  readonly onLeave: (isLeft: boolean) => void
}) {
  const { routing: t, channels } = useTexts()
  const { percent } = useFormatters()
  return (
    <>
      <Link to="/channels/$id" params={{ id: String(id) }} title={name} className={classes['name']}>
        {name}
      </Link>
      <span className={classes['share']}>
        <span aria-hidden style={{ width: `${share * 100}%` }} />
      </span>
      <span className={classes['percent']}>{percent(share)}</span>
      <StateMark tone={TONES[condition]} word={channels.states[condition]} />
      <span className={classes['why']}>{why === null ? !native && t.converted : t.whyNot[why]}</span>
      <Switch
        size="xs"
        label={t.without(name)}
        checked={isLeft}
        onChange={({ currentTarget: { checked } }) => onLeave(checked)}
      />
    </>
  )
}

function Verdict({
  simulation: { refusal, group, ratio, hold, route },
}: {
  readonly simulation: Simulation
}) {
  const { routing: t } = useTexts()
  const first = route.flatMap(({ channels }) => channels).filter(({ share }) => share > 0)
  const step = route.find(({ channels }) => channels.some(({ share }) => share > 0))
  const targets = first
    .filter((one) => step?.channels.includes(one))
    .map(({ name }) => name)
    .join(', ')
  return (
    <section aria-label={t.simulation} className={classes['verdict']}>
      <h2>{t.simulation}</h2>
      {refusal ? (
        <p>
          {t.refused(String(refusal.status), refusal.code)} <q>{refusal.message}</q>
        </p>
      ) : (
        <p>{t.goesTo(targets)}</p>
      )}
      <dl>
        <div>
          <dt>{t.group}</dt>
          <dd>{t.ratio(group, ratio)}</dd>
        </div>
        <div>
          <dt>{t.hold}</dt>
          <dd>
            <MoneyText quota={hold} />
          </dd>
        </div>
      </dl>
      <p className={classes['hint']}>{t.nothingSent}</p>
    </section>
  )
}
