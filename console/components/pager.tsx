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
  isByTime = false,
}: {
  readonly page: number
  readonly pageSize: number
  readonly total: number
  readonly onPage: (page: number) => void
  /** Whether the newest items come first, as the labels of the buttons then say. */
  readonly isByTime?: boolean
}) {
  const { common } = useTexts()
  const pages = Math.max(1, Math.ceil(total / pageSize))
  if (pages === 1 && page === 1) return null
  return (
    <div className={classes['pager']}>
      <span role="status">{common.pageOf(page, pages)}</span>
      <ActionIcon
        aria-label={isByTime ? common.newer : common.previousPage}
        disabled={page <= 1}
        onClick={() => onPage(page - 1)}
      >
        <IconChevronLeft size={18} />
      </ActionIcon>
      <ActionIcon
        aria-label={isByTime ? common.older : common.nextPage}
        disabled={page >= pages}
        onClick={() => onPage(page + 1)}
      >
        <IconChevronRight size={18} />
      </ActionIcon>
    </div>
  )
}
