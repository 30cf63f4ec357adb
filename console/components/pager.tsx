import { ActionIcon } from '@mantine/core'
import { IconChevronLeft, IconChevronRight } from '@tabler/icons-react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './pager.module.css'

/** Buttons to move through the pages of a list; shows nothing if there is only one page. */
export function Pager({
  page,
  pageSize,
  total,
  onPage,
  labels,
}: {
  readonly page: number
  readonly pageSize: number
  readonly total: number
  readonly onPage: (page: number) => void
  /** Other labels of the buttons, for rows that are ordered by time. */
  readonly labels?: { readonly previous: string; readonly next: string }
}) {
  const { common } = useTexts()
  const pages = Math.max(1, Math.ceil(total / pageSize))
  if (pages === 1 && page === 1) return null
  return (
    <div className={classes['pager']}>
      <span role="status">{common.pageOf(page, pages)}</span>
      <ActionIcon
        aria-label={labels?.previous ?? common.previousPage}
        disabled={page <= 1}
        onClick={() => onPage(page - 1)}
      >
        <IconChevronLeft size={18} />
      </ActionIcon>
      <ActionIcon
        aria-label={labels?.next ?? common.nextPage}
        disabled={page >= pages}
        onClick={() => onPage(page + 1)}
      >
        <IconChevronRight size={18} />
      </ActionIcon>
    </div>
  )
}
