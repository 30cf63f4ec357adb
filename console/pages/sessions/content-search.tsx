import { Button, TextInput } from '@mantine/core'
import { IconSearch } from '@tabler/icons-react'
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { type ContentSearch, contentSearchQuery } from '../../api/content.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { MoneyText } from '../../components/money-text.tsx'
import type { TimeRange } from '../../components/period.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './sessions.module.css'

const MIN_LETTERS = 2
const MAX_LETTERS = 200

type Hit = ContentSearch['items'][number]

/** A field for words that were said. The search begins with Enter or the button, because each hit is a look. */
export function ContentSearchForm({
  text,
  onSearch,
}: {
  readonly text: string
  readonly onSearch: (text: string | undefined) => void
}) {
  const { content } = useTexts()
  const [typed, setTyped] = useState(text)
  useEffect(() => setTyped(text), [text])
  const words = typed.trim()
  const isShort = words.length < MIN_LETTERS
  return (
    <form
      role="search"
      className={classes['search']}
      onSubmit={(event) => {
        event.preventDefault()
        if (words === '' || !isShort) onSearch(words === '' ? undefined : words)
      }}
    >
      <TextInput
        type="search"
        label={content.search}
        value={typed}
        maxLength={MAX_LETTERS}
        spellCheck={false}
        onChange={({ currentTarget: { value } }) => setTyped(value)}
      />
      <Button
        type="submit"
        variant="default"
        disabled={isShort}
        leftSection={<IconSearch size={16} aria-hidden />}
      >
        {content.searchButton}
      </Button>
    </form>
  )
}

/** The calls of a period in which words were said, with the place in which they stand. A new search needs a new key. */
export function ContentSearchResult({
  q,
  span: present,
  users,
  onClose,
}: {
  readonly q: string
  readonly span: TimeRange
  readonly users: readonly string[]
  readonly onClose: () => void
}) {
  const { content } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { count } = useFormatters()
  // The present span moves on; with it, the search would run again by itself.
  const [span] = useState(present)
  const query = useInfiniteQuery(
    contentSearchQuery(profile.id, {
      q,
      start_timestamp: span.from,
      end_timestamp: span.to === undefined ? undefined : span.to - 1,
      username: users,
    }),
  )
  const columns = useColumns().filter(({ key }) => isAdmin || key !== 'user')
  return (
    <QueryResult query={query} rows={6}>
      {({ pages }) => {
        const hits = pages.flatMap(({ items }) => items)
        const calls = pages.reduce((sum, page) => sum + page.calls, 0)
        const searched = pages.reduce((sum, page) => sum + page.searched, 0)
        const unread = pages.reduce((sum, page) => sum + page.unread, 0)
        return (
          <>
            {hits.length === 0 ? (
              <EmptyState text={content.noHit(q)}>
                <Button variant="default" onClick={onClose}>
                  {content.allSessions}
                </Button>
              </EmptyState>
            ) : (
              <DataTable
                label={content.hits}
                columns={columns}
                rows={hits}
                keyOf={({ id }) => id}
                areOpened
              />
            )}
            <p className={classes['hint']} role="status">
              {content.lookedAt(count(calls), count(searched))}{' '}
              {unread > 0 && `${content.unread(count(unread))} `}
              {hits.some(({ user_id }) => user_id !== profile.id) && content.isRecorded}
            </p>
            {query.hasNextPage && (
              <Button
                variant="default"
                loading={query.isFetchingNextPage}
                onClick={() => void query.fetchNextPage()}
              >
                {content.searchFurther}
              </Button>
            )}
            {searched === 0 && <HowToKeep text={content.nothingKeptHere} />}
          </>
        )
      }}
    </QueryResult>
  )
}

function useColumns(): readonly Column<Hit>[] {
  const { sessions, content } = useTexts()
  return [
    {
      key: 'said',
      label: content.title,
      phone: 'title',
      cell: (hit) => (
        <Link to="/logs/$id" params={{ id: hit.id }} data-row-link={hit.id} className={classes['excerpt']}>
          <small>{content.roles[hit.role]}</small> <Marked hit={hit} />
        </Link>
      ),
    },
    { key: 'user', label: sessions.user, cell: ({ username }) => <TruncatedText text={username} /> },
    {
      key: 'model',
      label: sessions.model,
      cell: ({ model_name }) => <TruncatedText text={model_name} isName />,
    },
    { key: 'key', label: sessions.key, cell: ({ token_name }) => <TruncatedText text={token_name} /> },
    {
      key: 'session',
      label: sessions.session,
      cell: ({ session }) =>
        session === '' ? (
          '–'
        ) : (
          <Link to="/sessions/$id" params={{ id: session }} search={{ as: 'thread' }}>
            {content.openThread}
          </Link>
        ),
    },
    { key: 'time', label: sessions.time, cell: ({ created_at }) => <TimeText at={created_at} /> },
    {
      key: 'cost',
      label: sessions.cost,
      isNumber: true,
      phone: 'value',
      cell: ({ quota }) => <MoneyText quota={quota} />,
    },
  ]
}

function Marked({ hit: { text, at, length } }: { readonly hit: Hit }) {
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + length)}</mark>
      {text.slice(at + length)}
    </>
  )
}

/** What an operator writes into gateway.yaml. */
const EXAMPLE = 'content_log:\n  what: full\n  keep: 30d'

/** Says that nothing is kept of what was said, and how to keep it. */
export function HowToKeep({ text }: { readonly text: string }) {
  const { content } = useTexts()
  const { isAdmin } = useSignedInAccount()
  return (
    <section aria-label={content.howToKeep} className={classes['keep']}>
      <p>
        {text} {isAdmin ? content.keepAsOperator : content.keepAsMember}
      </p>
      {isAdmin && (
        <pre tabIndex={0}>
          <code>{EXAMPLE}</code>
        </pre>
      )}
    </section>
  )
}
