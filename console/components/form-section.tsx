import { IconChevronDown, IconChevronRight } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import classes from './form-section.module.css'

/** A section of a form page: its name on the left, its fields on the right. */
export function FormSection({
  id,
  title,
  text,
  isWide,
  isOpen = true,
  onToggle,
  children,
}: {
  /** The name of the section in an index of the page. */
  readonly id?: string
  readonly title: string
  readonly text?: string
  /** Whether the fields take the whole width, such as a table. */
  readonly isWide?: boolean
  readonly isOpen?: boolean
  /** Called to open or close the section by a click on its name; absent if the section is always open. */
  readonly onToggle?: () => void
  readonly children: ReactNode
}) {
  return (
    <section
      id={id}
      tabIndex={id === undefined ? undefined : -1}
      aria-label={title}
      className={classes['section']}
      data-wide-fields={isWide}
    >
      <div>
        <h2>
          {onToggle ? (
            <button type="button" className={classes['toggle']} aria-expanded={isOpen} onClick={onToggle}>
              {isOpen ? (
                <IconChevronDown size={16} aria-hidden />
              ) : (
                <IconChevronRight size={16} aria-hidden />
              )}
              {title}
            </button>
          ) : (
            title
          )}
        </h2>
        {text !== undefined && <p>{text}</p>}
      </div>
      {isOpen && <div className={classes['fields']}>{children}</div>}
    </section>
  )
}
